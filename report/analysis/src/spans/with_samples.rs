//! Spans besides another question about all samples.

use usdtrec_format::perf::Sample;
use usdtrec_trace::events::fold::{Folded, fold};
use usdtrec_trace::events::outcome::ReadOutcome;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::key::SpanKey;
use crate::spans::options::{GroupBy, SpanOptions};
use crate::spans::own_keys::{EarlyKeys, own_keys};
use crate::spans::pair::Pair;
use crate::spans::walk::{SpanWalk, Spans};
use crate::stats::keys::dictionary::Dictionary;

/// The spans that are matched besides.
#[derive(Debug, Default)]
pub(crate) struct SpansBeside {
    pub(crate) pairs: Vec<Pair>,
    /// The key of each pair.
    pub(crate) keys: EarlyKeys,
    /// The keys that spans are grouped by.
    pub(crate) by: Vec<GroupBy>,
    /// Shorter ones do not count, ns.
    pub(crate) min: u64,
    /// Which are selected; `None` if the filter of samples says it.
    pub(crate) filter: Option<SampleFilter>,
}

impl SpansBeside {
    /// All spans that are found by the names of probes.
    pub(crate) fn find(session: &TraceSession, filter: &SampleFilter, rows: &Rows) -> Self {
        let pairs = Pair::find(session, |event| filter.event(event));
        Self {
            keys: EarlyKeys::find(&pairs, session, filter, rows),
            pairs,
            ..Self::default()
        }
    }
}

/// What a walk over all samples gives, with the spans beside it.
pub(crate) struct Beside<S, A> {
    /// `None` where there are no pairs.
    pub(crate) spans: Option<S>,
    /// The states that samples were added to.
    pub(crate) states: Vec<A>,
    pub(crate) outcome: ReadOutcome,
}

/// Adds every sample that is selected to one of several states, as [`fold`] does, and matches spans. `found` gets the spans; without pairs, the
/// samples need no order.
pub(crate) fn fold_with_spans<A: Send, S>(
    session: &TraceSession,
    filter: &SampleFilter,
    rows: &Rows,
    spans: SpansBeside,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'_>, SampleTarget, &Sample<'_>) + Sync,
    found: impl FnOnce(&SpanWalk<'_>, Spans) -> S,
) -> Beside<S, A> {
    let SpansBeside {
        pairs,
        keys,
        by,
        min,
        filter: of_spans,
    } = spans;
    if pairs.is_empty() {
        let Folded { states, outcome } = fold(session, filter, make, add);
        return Beside {
            spans: None,
            states,
            outcome,
        };
    }
    let with_keys = |keys: Vec<SpanKey>| SpanOptions {
        keys,
        // What is grouped by intervals of time is asked for durations alone.
        covers: by.is_empty(),
        by: by.clone(),
        min,
        ..SpanOptions::default()
    };
    let early = with_keys(keys.keys.clone());
    let whole;
    let mut walk = SpanWalk {
        session,
        filter: of_spans.as_ref().unwrap_or(filter),
        samples: of_spans.is_some().then_some(filter),
        pairs: &pairs,
        options: &early,
        rows,
        dictionary: &Dictionary::default(),
    };
    let run = |walk: &SpanWalk<'_>| walk.run(&make, &add, |event| filter.event(event));
    let mut walked = run(&walk);
    if !keys.hold(&walked.spans) {
        drop(walked);
        whole = with_keys(own_keys(&pairs, session, rows));
        walk.options = &whole;
        walked = run(&walk);
    }
    Beside {
        spans: Some(found(&walk, walked.spans)),
        states: walked.states,
        outcome: walked.outcome,
    }
}
