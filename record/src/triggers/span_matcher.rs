//! Spans that fire triggers.

use usdtrec_attach::filter::SiteDecoder;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_format::spans::NamedPair;
use usdtrec_format::trace::{FiredTrigger, TriggerKind};

use super::open_spans::{EndedSpan, OpenSpans, SpanHit, SpanKey};
use super::span_marks::{MarkPlaces, PairMarks};

/// Matches the hits of one pair of events for one trigger.
#[derive(Debug)]
pub(super) struct SpanMatcher {
    /// The trigger, by its place.
    pub(super) trigger: usize,
    /// Name of the span.
    pub(super) name: String,
    /// The pair.
    pub(super) pair: NamedPair,
    least: u64,
    marks: PairMarks,
    /// Names of the events, as the marks have them.
    events: Vec<String>,
    open: OpenSpans,
}

impl SpanMatcher {
    pub(super) fn new(
        trigger: usize,
        least: u64,
        pair: NamedPair,
        probes: &[PlannedProbe],
    ) -> Self {
        let marks = PairMarks::of_pair(&pair, probes);
        let events = pair.starts.iter().chain(&pair.dones);
        let events = events.filter_map(|at| probes.get(*at));
        Self {
            trigger,
            name: pair.name.clone(),
            least,
            events: events.map(PlannedProbe::event).collect(),
            open: OpenSpans::new(marks.crosses),
            marks,
            pair,
        }
    }

    /// Continues one that knew fewer probes.
    pub(super) fn continue_from(&mut self, earlier: &mut Self) {
        self.open = std::mem::take(&mut earlier.open);
    }

    /// The places of its events: their numbers among the probes, in the order of the marks.
    pub(super) fn probes(&self) -> impl Iterator<Item = usize> + '_ {
        self.pair.starts.iter().chain(&self.pair.dones).copied()
    }

    /// Takes a sample of one of its events, which has a place in the order of the marks.
    pub(super) fn take(&mut self, event: usize, decoder: &mut SiteDecoder, body: &[u8]) {
        let Some(places) = self.marks.places.get(event) else {
            return;
        };
        let Some(hit) = hit(event, places, decoder, body) else {
            return;
        };
        let begins = event < self.pair.starts.len();
        self.open.add(SpanHit { begins, ..hit });
    }

    /// Forgets the open spans.
    pub(super) fn forget(&mut self) {
        self.open.forget();
    }

    /// Ends a pass over all rings: calls `fired` for each span that was long.
    pub(super) fn end_pass(&mut self, condition: &str, mut fired: impl FnMut(FiredTrigger)) {
        let Self {
            name,
            least,
            events,
            open,
            ..
        } = self;
        open.end_pass(|span| {
            let EndedSpan { end, duration } = span;
            if duration < *least {
                return;
            }
            fired(FiredTrigger {
                kind: TriggerKind::Span,
                condition: condition.to_owned(),
                time_ns: end.time,
                event: events.get(end.event).cloned().unwrap_or_default(),
                pid: end.pid,
                tid: end.tid,
                span: name.clone(),
                duration_ns: Some(duration),
                ..FiredTrigger::default()
            });
        });
    }
}

/// What a sample is to spans; `None` if it is too short, or has no value that is its key.
fn hit(
    event: usize,
    places: &MarkPlaces,
    decoder: &mut SiteDecoder,
    body: &[u8],
) -> Option<SpanHit> {
    let sample = decoder.parse(body)?;
    let values = match places.is_empty() {
        true => &[][..],
        false => decoder.values(&sample),
    };
    let key = match places.key {
        None => SpanKey {
            task: sample.tid,
            value: None,
        },
        Some(_) => SpanKey {
            task: sample.pid,
            value: Some(places.key_value(values)?),
        },
    };
    Some(SpanHit {
        time: sample.time,
        key,
        agreed: places.agreed_values(values),
        pid: sample.pid,
        tid: sample.tid,
        event,
        begins: false,
    })
}
