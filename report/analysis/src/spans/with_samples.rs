//! The spans that are found by the names of probes, besides another question about all samples.

use usdtrec_format::perf::Sample;
use usdtrec_trace::events::fold::{Folded, fold};
use usdtrec_trace::events::outcome::ReadOutcome;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::options::{GroupBy, SpanOptions};
use crate::spans::own_keys::own_keys;
use crate::spans::pair::Pair;
use crate::spans::walk::{SpanWalk, Spans};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::Key;

/// What a walk over all samples gives, with the spans beside it.
pub(crate) struct Beside<S, A> {
    /// `None` where no spans are found by the names of probes.
    pub(crate) spans: Option<S>,
    /// The states that samples were added to.
    pub(crate) states: Vec<A>,
    pub(crate) outcome: ReadOutcome,
}

/// Adds every sample that is selected to one of several states, as [`fold`] does, and matches the spans that are found by the names of probes,
/// grouped by keys of their begins. `found` gets the spans; without any, the samples need no order.
pub(crate) fn fold_with_spans<A: Send, S>(
    session: &TraceSession,
    filter: &SampleFilter,
    rows: &Rows,
    by: Vec<Key>,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'_>, SampleTarget, &Sample<'_>) + Sync,
    found: impl FnOnce(&SpanWalk<'_>, Spans) -> S,
) -> Beside<S, A> {
    let pairs = Pair::find(session, |event| filter.event(event));
    if pairs.is_empty() {
        let Folded { states, outcome } = fold(session, filter, make, add);
        return Beside {
            spans: None,
            states,
            outcome,
        };
    }
    let options = SpanOptions {
        keys: own_keys(&pairs, session, rows),
        // What is grouped by intervals of time is asked for durations alone.
        covers: by.is_empty(),
        by: by.into_iter().map(GroupBy::of_begin).collect(),
        ..SpanOptions::default()
    };
    let walk = SpanWalk {
        session,
        filter,
        pairs: &pairs,
        options: &options,
        rows,
        dictionary: &Dictionary::default(),
    };
    let walked = walk.run(make, add, |event| filter.event(event));
    Beside {
        spans: Some(found(&walk, walked.spans)),
        states: walked.states,
        outcome: walked.outcome,
    }
}
