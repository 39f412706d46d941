//! The stage that looks for hits which fire triggers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use usdtrec_attach::engine::{Attached, ProbeAttr};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::error::{SpanFault, UsageError};
use usdtrec_attach::filter;
use usdtrec_attach::filter::SiteDecoder;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_decode::{Filter, SampleField};
use usdtrec_format::expr::Expr;
use usdtrec_format::spans::{NamedPair, asked_pairs};
use usdtrec_format::trace::{FiredTrigger, TriggerKind};
use usdtrec_watch::batch::{Batch, Record};
use usdtrec_watch::stage::Stage;

use super::pace::{Trigger, TriggerSubject};
use super::span_matcher::SpanMatcher;

/// Looks for hits that fire triggers. All records pass on.
#[derive(Debug)]
pub(crate) struct TriggerWatch {
    triggers: Vec<Trigger>,
    /// Sites whose hits matter, by sample id.
    sites: HashMap<u64, WatchedSite>,
    spans: Vec<SpanMatcher>,
    /// What fired in this pass.
    seen: Sighted,
    /// What fired in passes that have ended.
    sighted: Sighted,
}

/// What has fired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sighted {
    /// The first, by time; if any ends the recording, the first of these.
    pub(crate) first: Option<Fired>,
    /// Number of others.
    pub(crate) more: u64,
}

/// A trigger that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) fired: FiredTrigger,
    /// Whether the recording ends.
    pub(crate) ends: bool,
}

/// A site whose hits matter.
#[derive(Debug)]
struct WatchedSite {
    event: String,
    decoder: SiteDecoder,
    hits: Vec<WatchedHit>,
    /// Spans, by their place, and the place of the event in their marks.
    spans: Vec<(usize, usize)>,
}

/// Hits that fire a trigger.
#[derive(Clone, Debug)]
struct WatchedHit {
    /// The trigger, by its place.
    trigger: usize,
    filter: Option<Filter>,
}

impl Sighted {
    /// Adds what fired at a time, which is made only if it is the first.
    fn add_at(&mut self, time: u64, ends: bool, fired: impl FnOnce() -> FiredTrigger) {
        if let Some(first) = &self.first {
            self.more += 1;
            if (!first.ends, first.fired.time_ns) <= (!ends, time) {
                return;
            }
        }
        let fired = fired();
        self.first = Some(Fired { fired, ends });
    }
}

impl TriggerWatch {
    /// The triggers of a recording; `None` if there are none.
    ///
    /// # Errors
    /// [`UsageError::Trigger`] if no attached probe can fire a trigger and none is added later; [`UsageError::FilterName`] and the like if a filter
    /// fits none of the probes.
    pub(crate) fn for_attached(
        attached: &Attached,
        triggers: &[Trigger],
    ) -> Result<Option<Self>, RecordError> {
        if triggers.is_empty() {
            return Ok(None);
        }
        let mut watch = Self {
            triggers: triggers.to_vec(),
            sites: HashMap::new(),
            spans: Vec::new(),
            seen: Sighted::default(),
            sighted: Sighted::default(),
        };
        watch.watch_hits(attached, 0..attached.probes.len(), true)?;
        let problems = watch.watch_spans(attached);
        if let Some(fault) = problems
            .into_iter()
            .next()
            .filter(|_| !attached.engine.follows())
        {
            return Err(UsageError::Span(fault).into());
        }
        Ok(Some(watch))
    }

    /// Adds probes, by their indexes in [`Attached::probes`].
    ///
    /// # Errors
    /// None: filters that do not fit them are not theirs.
    pub(crate) fn add(
        &mut self,
        attached: &Attached,
        probes: &Range<usize>,
    ) -> Result<(), RecordError> {
        self.watch_hits(attached, probes.clone(), false)?;
        self.watch_spans(attached);
        Ok(())
    }

    /// The triggers that no probe can fire so far.
    pub(crate) fn idle(&self) -> impl Iterator<Item = &Trigger> {
        let all = self.triggers.iter().enumerate();
        all.filter(|(at, _)| !self.is_watched(*at))
            .map(|(_, trigger)| trigger)
    }

    fn is_watched(&self, trigger: usize) -> bool {
        let mut hits = self.sites.values().flat_map(|site| &site.hits);
        hits.any(|hit| hit.trigger == trigger)
            || self.spans.iter().any(|span| span.trigger == trigger)
    }

    /// Watches the hits of probes for triggers of hits.
    fn watch_hits(
        &mut self,
        attached: &Attached,
        probes: Range<usize>,
        is_first: bool,
    ) -> Result<(), RecordError> {
        let triggers = std::mem::take(&mut self.triggers);
        let mut unfit = None;
        for (at, trigger) in triggers.iter().enumerate() {
            let (pattern, filter) = match &trigger.subject {
                TriggerSubject::Hit { pattern, filter } => (pattern, filter),
                TriggerSubject::Span { .. } => continue,
            };
            let all = attached.probes.iter().zip(&attached.attrs);
            let all = all.skip(probes.start).take(probes.len());
            let mut has_any = false;
            for (probe, attrs) in all {
                if !pattern.matches(&probe.provider, &probe.name) {
                    continue;
                }
                let filter = filter.as_ref().map(|filter| bound(probe, filter));
                match filter.transpose() {
                    Ok(filter) => {
                        has_any = true;
                        let hit = WatchedHit {
                            trigger: at,
                            filter,
                        };
                        self.watch_sites(probe, attrs, |site| site.hits.push(hit.clone()));
                    }
                    Err(error) if !has_any => unfit = Some(error),
                    Err(_) => {}
                }
            }
            if has_any {
                unfit = None;
            } else if is_first && unfit.is_none() && !attached.engine.follows() {
                unfit = Some(
                    UsageError::Trigger {
                        trigger: trigger.text.clone(),
                    }
                    .into(),
                );
            }
            if let Some(error) = unfit.take().filter(|_| is_first) {
                self.triggers = triggers;
                return Err(error);
            }
        }
        self.triggers = triggers;
        Ok(())
    }

    fn watch_sites(
        &mut self,
        probe: &PlannedProbe,
        attrs: &ProbeAttr,
        mut watch: impl FnMut(&mut WatchedSite),
    ) {
        for (id, decoder) in SiteDecoder::of_probe(probe, attrs) {
            let site = self.sites.entry(id).or_insert_with(|| WatchedSite {
                event: probe.event(),
                decoder,
                hits: Vec::new(),
                spans: Vec::new(),
            });
            watch(site);
        }
    }

    /// Watches the hits of all probes for triggers of spans. Returns why there are none of them.
    fn watch_spans(&mut self, attached: &Attached) -> Vec<SpanFault> {
        let probes = &attached.probes;
        let events: Vec<String> = probes.iter().map(|probe| probe.event()).collect();
        let names: Vec<&str> = events.iter().map(String::as_str).collect();
        let mut earlier = std::mem::take(&mut self.spans);
        let mut faults = Vec::new();
        for (at, trigger) in self.triggers.iter().enumerate() {
            let (span, least) = match &trigger.subject {
                TriggerSubject::Span { span, least } => (span, least),
                TriggerSubject::Hit { .. } => continue,
            };
            match asked_pairs(span, &names) {
                Err(error) => faults.push(SpanFault::Name(error)),
                Ok(pairs) => {
                    let matcher = |pair: NamedPair| SpanMatcher::new(at, *least, pair, probes);
                    self.spans.extend(pairs.into_iter().map(matcher));
                }
            }
        }
        for span in &mut self.spans {
            let is_same = |known: &&mut SpanMatcher| {
                known.trigger == span.trigger && known.pair.name == span.pair.name
            };
            if let Some(known) = earlier.iter_mut().find(is_same) {
                span.continue_from(known);
            }
        }
        for site in self.sites.values_mut() {
            site.spans.clear();
        }
        let places: Vec<(usize, usize, usize)> = self
            .spans
            .iter()
            .enumerate()
            .flat_map(|(at, span)| {
                let probes = span.probes().enumerate();
                probes.map(move |(event, probe)| (at, event, probe))
            })
            .collect();
        for (at, event, number) in places {
            if let (Some(probe), Some(attrs)) = (probes.get(number), attached.attrs.get(number)) {
                self.watch_sites(probe, attrs, |site| site.spans.push((at, event)));
            }
        }
        faults
    }

    /// The spans that overlap on a thread, each with the number of ends that show it. Several triggers may be of one span.
    pub(crate) fn overlaps(&self) -> BTreeMap<&str, u64> {
        let overlaps = self
            .spans
            .iter()
            .map(|span| (&*span.pair.name, span.older()));
        overlaps.filter(|(_, ends)| *ends > 0).collect()
    }

    /// What has fired since the last call, in passes that have ended.
    pub(crate) fn take_sighted(&mut self) -> Sighted {
        std::mem::take(&mut self.sighted)
    }

    fn look(&mut self, record: Record<'_>) {
        let head = record.sample();
        let Some(site) = head.and_then(|head| self.sites.get_mut(&head.id)) else {
            return;
        };
        for &(at, event) in &site.spans {
            if let Some(span) = self.spans.get_mut(at) {
                span.take(event, &mut site.decoder, record.body());
            }
        }
        for hit in &site.hits {
            let Some(sample) = site.decoder.parse(record.body()) else {
                continue;
            };
            let filter = hit.filter.as_ref();
            if filter.is_some_and(|filter| !filter::is_true(filter, &mut site.decoder, &sample)) {
                continue;
            }
            let Some(trigger) = self.triggers.get(hit.trigger) else {
                continue;
            };
            let event = &site.event;
            self.seen
                .add_at(sample.time, trigger.ends, || FiredTrigger {
                    kind: TriggerKind::Probe,
                    condition: trigger.text.clone(),
                    time_ns: sample.time,
                    event: event.clone(),
                    pid: sample.pid,
                    tid: sample.tid,
                    ..FiredTrigger::default()
                });
        }
    }

    /// A pause of probes, by their sample ids, is over: a span that began before has no end that is known.
    pub(crate) fn end_pause(&mut self, ids: &[u64]) {
        let sites = ids.iter().filter_map(|id| self.sites.get(id));
        let spans: BTreeSet<usize> = sites
            .flat_map(|site| site.spans.iter().map(|(span, _)| *span))
            .collect();
        for span in spans {
            if let Some(span) = self.spans.get_mut(span) {
                span.forget();
            }
        }
    }
}

/// The filter of a trigger, for the samples of a probe.
fn bound(probe: &PlannedProbe, asked: &Expr) -> Result<Filter, RecordError> {
    let raw = probe.plan.raw.as_ref();
    let has_context = raw.is_some_and(|raw| raw.thread_context.is_some());
    let filter = filter::bind(probe, probe.in_own_names(asked), has_context)?;
    // Strings are in samples of programs; names of threads are in none.
    let is_unknown = filter.fields().contains(&SampleField::Comm);
    if filter.reads_memory() && (raw.is_none() || is_unknown) {
        let event = probe.event();
        return Err(UsageError::FilterReadsMemory { event }.into());
    }
    Ok(filter)
}

impl Stage for TriggerWatch {
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        for record in batch.records() {
            self.look(record);
        }
        batch
    }

    fn end_pass(&mut self) -> Option<Batch<'_>> {
        let Self {
            triggers,
            spans,
            seen,
            sighted,
            ..
        } = self;
        for span in spans {
            let Some(trigger) = triggers.get(span.trigger) else {
                continue;
            };
            span.end_pass(&trigger.text, |fired| {
                seen.add_at(fired.time_ns, trigger.ends, || fired);
            });
        }
        let Sighted { first, more } = std::mem::take(seen);
        sighted.more += more;
        if let Some(Fired { fired, ends }) = first {
            sighted.add_at(fired.time_ns, ends, || fired);
        }
        None
    }
}
