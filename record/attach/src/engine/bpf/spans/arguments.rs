//! The arguments by which spans are matched where they are aggregated. Of others, only those of keys of groups are read.

use std::collections::{BTreeMap, BTreeSet};

use crate::aggregation::{Aggregation, Arguments, with_lengths};

/// Which arguments are read where hits are aggregated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) enum SpanArguments {
    /// Keys and measured arguments: there are no spans.
    #[default]
    None,
    /// All, to find out which of them match spans.
    All,
    /// The same, but for the events of spans.
    OfEvents(BTreeMap<String, MatchedBy>),
}

/// Which arguments of an event of a span are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::bpf) struct MatchedBy {
    /// Whether those of keys of groups are: it begins the span.
    pub(super) has_keys: bool,
    /// Names of those by which it is matched.
    pub(super) names: BTreeSet<String>,
}

impl SpanArguments {
    /// Which of the arguments of an event are read.
    pub(in crate::engine::bpf) fn needed(
        &self,
        aggregation: &Aggregation,
        event: &str,
        of: Arguments<'_>,
    ) -> Vec<bool> {
        let matched = match self {
            Self::None => None,
            Self::All => return vec![true; of.all.len()],
            Self::OfEvents(events) => events.get(event),
        };
        let Some(matched) = matched else {
            return aggregation.needed(of);
        };
        let places = of.all.iter().enumerate();
        let places = places.filter(|(_, argument)| matched.names.contains(&argument.name));
        let mut needed = with_lengths(places.map(|(place, _)| place).collect(), of.all);
        if matched.has_keys {
            needed.extend(aggregation.needed_by_keys(of));
        }
        let all = 0..of.all.len();
        all.map(|place| needed.contains(&place)).collect()
    }
}
