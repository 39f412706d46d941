//! What was counted of each probe and group since the start.

use std::collections::BTreeMap;

use usdtrec_format::schema::Argument;
use usdtrec_record::HitTotals;
use usdtrec_report::stat::StatKey;

use super::group_key::GroupKey;

/// What was counted of a probe or group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) count: u64,
    pub(super) lost: u64,
}

/// The sums of probes and groups of one name.
pub(super) struct Sums<'c> {
    pub(super) counts: BTreeMap<GroupKey, Count>,
    /// What is known of the argument of each key, by event.
    arguments: BTreeMap<&'c str, &'c [Option<Argument>]>,
}

impl<'c> Sums<'c> {
    /// The sums of what was counted; `has_keys` is whether hits are counted by group.
    pub(super) fn new(counted: &'c HitTotals, has_keys: bool) -> Self {
        let mut counts: BTreeMap<GroupKey, Count> = BTreeMap::new();
        for probe in &counted.hits {
            let sum = counts
                .entry(GroupKey::of_probe(probe, has_keys))
                .or_default();
            sum.count += probe.hits - probe.lost;
            sum.lost += probe.lost;
        }
        let mut arguments = BTreeMap::new();
        for group in &counted.groups {
            let key = GroupKey::of_group(group);
            arguments.insert(&*group.probe.event, &*group.probe.arguments);
            counts.entry(key).or_default().count += group.count;
        }
        Self { counts, arguments }
    }

    /// Whether the hits of a probe are in groups.
    pub(super) fn has_groups(&self, event: &str) -> bool {
        self.arguments.contains_key(event)
    }

    /// The keys of a group as they are shown.
    pub(super) fn shown(&self, key: &GroupKey) -> Option<Vec<StatKey>> {
        let arguments = self.arguments.get(&*key.event);
        key.shown(arguments.copied().unwrap_or_default())
    }
}
