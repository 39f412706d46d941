//! What was counted of each probe and group since the start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_format::schema::Argument;
use usdtrec_record::{Aggregation, GroupedProbe, HitTotals, MeasuredArgument, SpanHitCounts};
use usdtrec_report::stat::{SpanFates, StatKey};

use super::by::StatBy;
use super::group_key::{GroupKey, KnownStacks};
use super::numbers::Numbers;

/// By what hits are counted, and which numbers are added up.
#[derive(Clone, Debug, Default)]
pub(in crate::cmd) struct StatGrouping {
    /// The keys; empty if those of a probe are one group.
    pub(in crate::cmd) keys: Vec<StatBy>,
    pub(in crate::cmd) measured: Vec<MeasuredArgument>,
}

/// What was counted of a probe or group.
#[derive(Clone, Debug, Default)]
pub(super) struct Count {
    pub(super) count: u64,
    pub(super) lost: u64,
    /// How many begins and ends were matched; `None` but for all spans of a name.
    pub(super) fates: Option<SpanFates>,
    /// `None` if no group has these keys: of hits that are in none.
    numbers: Option<Numbers>,
}

/// The sums of probes and groups of one name.
pub(super) struct Sums<'c> {
    pub(super) counts: BTreeMap<GroupKey, Count>,
    /// The probes with groups, by event.
    probes: BTreeMap<&'c str, &'c Arc<GroupedProbe>>,
}

impl StatGrouping {
    /// What programs do for it. The counts are read at intervals, or once at the end.
    pub(in crate::cmd) fn aggregation(&self, interval: Option<Duration>) -> Aggregation {
        Aggregation {
            interval,
            by: self.keys.iter().map(|by| by.key.clone()).collect(),
            measured: self.measured.clone(),
        }
    }

    /// Whether hits of a probe are divided into groups.
    pub(super) const fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }
}

impl Count {
    /// The numbers; those of hits in no group are not known.
    pub(super) fn into_numbers(self, grouping: &StatGrouping) -> Numbers {
        match self.numbers {
            Some(numbers) => numbers,
            None if self.count == 0 => Numbers::none(&grouping.measured),
            None => Numbers::unknown(&grouping.measured),
        }
    }

    /// What was counted since this; it becomes what the next interval begins after.
    pub(super) fn advance(&mut self, now: Self, grouping: &StatGrouping) -> Self {
        let count = now.count.saturating_sub(self.count);
        let numbers = match (&now.numbers, &self.numbers) {
            _ if count == 0 => Some(Numbers::none(&grouping.measured)),
            (Some(now), Some(before)) => Some(now.since(before)),
            (now, _) => now.clone(),
        };
        let earlier = self.fates.unwrap_or_default();
        let since = Self {
            fates: now.fates.map(|fates| fates.since(earlier)),
            count,
            lost: now.lost.saturating_sub(self.lost),
            numbers,
        };
        let before = self.numbers.take();
        let none = || Numbers::none(&grouping.measured);
        *self = Self {
            numbers: match now.numbers {
                Some(now) if count == 0 => Some(now.postponed(&before.unwrap_or_else(none))),
                now => now.map(Numbers::counted),
            },
            ..now
        };
        since
    }
}

impl<'c> Sums<'c> {
    /// The sums of what was counted.
    pub(super) fn new(
        counted: &'c HitTotals,
        grouping: &StatGrouping,
        stacks: &KnownStacks,
    ) -> Self {
        let mut counts: BTreeMap<GroupKey, Count> = BTreeMap::new();
        for probe in &counted.hits {
            let key = GroupKey::for_probe(probe, grouping.has_keys());
            let sum = counts.entry(key).or_default();
            sum.count += probe.hits - probe.lost;
            sum.lost += probe.lost;
        }
        for span in &counted.spans {
            let key = GroupKey::for_span(span, grouping.has_keys());
            let sum = counts.entry(key).or_default();
            sum.count += span.counts.ungrouped;
            sum.lost += span.lost;
            sum.fates = Some(fates(&span.counts));
        }
        let mut probes = BTreeMap::new();
        for group in &counted.groups {
            let key = GroupKey::for_group(group, &grouping.keys, stacks);
            probes.insert(&*group.probe.event, &group.probe);
            let sum = counts.entry(key).or_default();
            sum.count += group.count;
            let none = || Numbers::none(&grouping.measured);
            sum.numbers.get_or_insert_with(none).add(group);
        }
        Self { counts, probes }
    }

    /// The keys of a group as they are shown.
    pub(super) fn shown(&self, key: &GroupKey) -> Option<Vec<StatKey>> {
        let probe = self.probes.get(&*key.event);
        key.shown(probe.map_or(&[], |probe| &probe.arguments))
    }

    /// What is known of the measured arguments of the probes with groups, by event. Their names are those that were asked for, as in other output.
    pub(super) fn measured(
        &self,
        grouping: &StatGrouping,
    ) -> BTreeMap<String, Vec<Option<Argument>>> {
        let probes = self.probes.iter().map(|(event, probe)| {
            let both = probe.measured.iter().zip(&grouping.measured);
            let arguments = both.map(|(known, asked)| {
                Some(Argument {
                    name: asked.name.clone(),
                    ..known.clone()?
                })
            });
            ((*event).to_owned(), arguments.collect())
        });
        probes.collect()
    }
}

/// How many begins and ends were matched.
const fn fates(counts: &SpanHitCounts) -> SpanFates {
    SpanFates {
        open: counts.open(),
        unfinished: counts.unfinished,
        unmatched: counts.unmatched,
        unkeyed: counts.unkeyed,
        short: counts.short,
        unkept: counts.deep + counts.full,
    }
}
