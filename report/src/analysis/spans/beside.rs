//! The spans that the names of probes tell of, beside whatever else is asked of all samples.

use usdtrec_format::perf::Sample;

use crate::analysis::spans::own_keys::own_keys;
use crate::analysis::spans::pair::Pair;
use crate::analysis::spans::walk::{By, SpanOptions, SpanWalk, Spans};
use crate::events::fold::fold;
use crate::events::outcome::Outcome;
use crate::events::selection::Filter;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::Key;
use crate::trace::rows::Rows;
use crate::trace::session::Session;
use crate::trace::session::ids::Target;
use crate::trace::session::resolver::Resolver;

/// Adds every sample that is asked for to one of several states, as [`fold`] does, and matches spans where names of probes tell of any,
/// grouped by keys of their begins. `found` gets the spans; without any, the samples need no order.
pub(crate) fn fold_with_spans<A: Send, S>(
    session: &Session,
    filter: &Filter,
    (rows, by): (&Rows, Vec<Key>),
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, &mut Resolver<'_>, Target, &Sample<'_>) + Sync,
    found: impl FnOnce(&SpanWalk<'_>, Spans) -> S,
) -> (Option<S>, Vec<A>, Outcome) {
    let pairs = Pair::find(session, |event| filter.event(event));
    if pairs.is_empty() {
        let (states, outcome) = fold(session, filter, make, add);
        return (None, states, outcome);
    }
    let options = SpanOptions {
        keys: own_keys(&pairs, session, rows),
        by: by.into_iter().map(By::of_begin).collect(),
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
    let (spans, states, outcome) = walk.run(make, add, |event| filter.event(event));
    (Some(found(&walk, spans)), states, outcome)
}
