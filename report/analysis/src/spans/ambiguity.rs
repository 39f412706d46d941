//! Names of arguments that the events which begin a span and those which end it both have, with values that may differ.

use usdtrec_trace::events::selection::SampleFilter;

use crate::spans::key::SpanKey;
use crate::spans::walk::SpanWalk;

/// A name that means the argument of the event which begins the span, although the event which ends it has such an argument, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// What has the name.
    pub used_by: NameUse,
    /// The name.
    pub name: String,
    /// An event which ends the span.
    pub end: String,
}

/// A part of a question that has names of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// What spans are grouped by.
    GroupKeys,
    /// The filter.
    Filter,
}

/// The ambiguous names in a question.
pub(crate) fn ambiguities(walk: &SpanWalk<'_>, filter: &SampleFilter) -> Vec<Ambiguity> {
    let by = walk.options.by.iter();
    let by = by.filter_map(|by| by.of_both.as_deref());
    let by = by.map(|name| (NameUse::GroupKeys, name));
    let of_filter = filter.of_both().iter();
    let of_filter = of_filter.map(|name| (NameUse::Filter, &**name));
    let found = by.chain(of_filter).filter_map(|(used_by, name)| {
        let differs = |key: &SpanKey| !key.is_same(name);
        let mut pairs = walk.pairs.iter().zip(&walk.options.keys);
        let (pair, _) = pairs.find(|(_, key)| differs(key))?;
        let end = walk.session.events().events.get(*pair.dones.first()?)?;
        Some(Ambiguity {
            used_by,
            name: name.to_owned(),
            end: end.name.clone(),
        })
    });
    found.collect()
}
