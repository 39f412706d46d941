//! `report --span`: how long it takes from one probe to another.
//!
//! With `--time`, spans are matched in the whole trace, and those are selected of which a part is in the time. So all
//! of a trace is read where spans are shown, and a part elsewhere.

pub mod facts;
pub(crate) mod group_keys;
pub(crate) mod groups;
pub(crate) mod passes;
pub(crate) mod request;

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;

use crate::measured_subject::{SpanGroup, SpanPart};
use crate::origin::Origin;
use crate::samples::SelectedSamples;
use crate::span_report::facts::{SlowFacts, SpanFacts, SpanReport};
use crate::span_report::groups::{RankedGroup, ranked};
use crate::span_report::passes::{SpanExtras, matched};
use crate::span_report::request::SpanRequest;
use crate::spans::ambiguity::{Ambiguity, ambiguities};
use crate::spans::durations::Durations;
use crate::spans::key::SpanKey;
use crate::spans::slowest::BeginStacks;
use crate::spans::walk::{SpanWalk, Spans};
use crate::stats::keys::key::Key;
use crate::stats::timeline::Timeline;

/// Slowest spans that are kept if nothing is said.
const TOP: usize = 10;

/// How long the spans of a pair, or of a group of them, lasted.
#[derive(Debug)]
pub(crate) struct SpanDurations {
    pub(crate) spans: SpanGroup,
    pub(crate) durations: Durations,
}

/// Spans of all pairs, or groups.
#[derive(Debug)]
pub(crate) struct AllSpans {
    pub(crate) named: Vec<SpanDurations>,
    /// Names that begin and end of a span both have.
    pub(crate) ambiguities: Vec<Ambiguity>,
}

/// Matches spans.
pub(crate) fn spans(
    request: SpanRequest<'_>,
    notices: &mut Notices,
) -> Result<SpanReport, ReportError> {
    let extras = SpanExtras {
        slowest: request.question.top.unwrap_or(TOP),
        heat: None,
        waits: true,
    };
    matched(request, extras, notices, |walk, spans| {
        report_of(request, walk, &spans, BeginStacks::Without)
    })
}

/// The report of spans that are matched.
pub(crate) fn report_of(
    request: SpanRequest<'_>,
    walk: &SpanWalk<'_>,
    spans: &Spans,
    stacks: BeginStacks,
) -> SpanReport {
    let SelectedSamples { session, filter } = request.samples;
    let pair_stats = spans.pair_stats.iter().enumerate();
    let ranked = pair_stats.map(|(at, _)| {
        let ranked = ranked(walk, spans, at, request.ranking());
        let shown = ranked.shown.into_iter().map(|ranked| ranked.group);
        (shown.collect(), ranked.rest.map(|rest| rest.others))
    });
    let (groups, others) = ranked.unzip();
    let slowest = spans.pair_stats.iter();
    SpanReport {
        origin: Origin::new(session),
        ambiguities: ambiguities(walk, filter),
        by: walk.options.by.clone(),
        min: request.question.min,
        least_parts: request.question.least_parts,
        order: request.question.order,
        spans: facts(walk, spans),
        groups,
        others,
        slowest: slowest
            .map(|stats| SlowFacts::from_stats(session, stats, stacks))
            .collect(),
    }
}

/// The spans of each pair, or of each group in the requested order and of all others; by the interval of `heat` in which they began, if it is given.
pub(crate) fn named(
    request: SpanRequest<'_>,
    heat: Option<Timeline>,
    notices: &mut Notices,
) -> Result<AllSpans, ReportError> {
    let extras = SpanExtras {
        heat,
        ..SpanExtras::default()
    };
    matched(request, extras, notices, |walk, spans| {
        let mut named = Vec::new();
        for (at, (pair, stats)) in walk.pairs.iter().zip(&spans.pair_stats).enumerate() {
            let part = |part: SpanPart, durations: Durations| SpanDurations {
                spans: SpanGroup {
                    span: pair.name.clone(),
                    by: request.question.by.clone(),
                    measured: request.question.measured,
                    part,
                },
                durations,
            };
            if request.question.by.is_empty() {
                named.push(part(SpanPart::All, stats.all.clone()));
                continue;
            }
            let keys: Vec<Key> = walk.options.by.iter().map(|by| by.key.clone()).collect();
            let groups = ranked(walk, &spans, at, request.ranking());
            for RankedGroup { group, durations } in groups.shown {
                let group = SpanPart::Group {
                    keys: keys.clone(),
                    values: group.values,
                };
                named.push(part(group, durations.clone()));
            }
            if let Some(rest) = groups.rest {
                let groups = rest.others.groups;
                named.push(part(SpanPart::Others { groups }, rest.durations));
            }
        }
        AllSpans {
            named,
            ambiguities: ambiguities(walk, request.samples.filter),
        }
    })
}

/// What spans are, pair by pair.
pub(crate) fn facts(walk: &SpanWalk<'_>, spans: &Spans) -> Vec<SpanFacts> {
    let both = walk.pairs.iter().zip(&spans.pair_stats).enumerate();
    both.map(|(at, (pair, stats))| {
        let thread = SpanKey::default();
        let key = walk.options.keys.get(at).unwrap_or(&thread);
        SpanFacts::new(walk, pair, key, stats)
    })
    .collect()
}
