//! Hits with equal keys.

use std::sync::Arc;

use usdtrec_format::schema::Argument;

use super::key::AggregateValue;
use super::numbers::NumberTotals;

/// Hits of a probe with equal keys. Sites whose arguments have other types have groups of their own, and two strings of which the same beginning was
/// read may have, too.
#[derive(Clone, Debug, PartialEq)]
pub struct HitGroup {
    /// The probe.
    pub probe: Arc<GroupedProbe>,
    /// The value of each key.
    pub values: Vec<AggregateValue>,
    /// Number of hits.
    pub count: u64,
    /// What the numbers of each measured argument add up to; `None` if there were too many groups to add up its numbers. Without a value of
    /// the argument, as for a probe that has none of this name, the count is 0.
    pub numbers: Vec<Option<NumberTotals>>,
}

/// The probe of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedProbe {
    /// Event name; of spans, their name.
    pub event: String,
    /// Whether the groups are of spans, by the arguments of their begins.
    pub is_span: bool,
    /// The argument of each key; `None` for other keys, and if the probe has none of this name.
    pub arguments: Vec<Option<Argument>>,
    /// Each measured argument; `None` if the probe has none of this name.
    pub measured: Vec<Option<Argument>>,
}
