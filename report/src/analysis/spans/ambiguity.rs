//! Names of arguments that the events which begin a span and those which end it both have, with values that may differ.

use crate::analysis::spans::key::SpanKey;
use crate::analysis::spans::walk::SpanWalk;
use crate::events::selection::SampleFilter;

/// A name that means the argument of the event which begins the span, although the event which ends it has such an argument, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguity {
    /// The option that has the name.
    pub(crate) asker: AmbiguousOption,
    pub(crate) name: String,
    /// An event which ends the span.
    pub(crate) end: String,
}

/// What uses a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AmbiguousOption {
    /// What spans are grouped by.
    By,
    Filter,
}

/// The ambiguous names in a question.
pub(crate) fn ambiguities(walk: &SpanWalk<'_>, filter: &SampleFilter) -> Vec<Ambiguity> {
    let by = walk.options.by.iter();
    let by = by.filter_map(|by| by.of_both.as_deref());
    let by = by.map(|name| (AmbiguousOption::By, name));
    let of_filter = filter.of_both().iter();
    let of_filter = of_filter.map(|name| (AmbiguousOption::Filter, &**name));
    let found = by.chain(of_filter).filter_map(|(asker, name)| {
        let differs = |key: &SpanKey| !key.is_same(name);
        let mut pairs = walk.pairs.iter().zip(&walk.options.keys);
        let (pair, _) = pairs.find(|(_, key)| differs(key))?;
        let end = walk.session.events().events.get(*pair.dones.first()?)?;
        Some(Ambiguity {
            asker,
            name: name.to_owned(),
            end: end.name.clone(),
        })
    });
    found.collect()
}
