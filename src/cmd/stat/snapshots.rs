//! What was counted so far and in each interval, with the intervals before.

use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_record::HitTotals;
use usdtrec_report::stat::{CountedNumbers, NumberEnds, SnapshotRow, StatSnapshot, StatSum};

use super::group_key::{GroupKey, KnownStacks};
use super::sums::{Count, StatGrouping, Sums};

/// What was counted before.
pub(in crate::cmd) struct Snapshots {
    grouping: StatGrouping,
    /// Length that intervals are to have.
    every: Duration,
    /// Number of intervals that are kept of each group. It takes four bytes of each, of 65,536 groups 15 MiB with 60 intervals.
    history: usize,
    /// Whether the numbers since the start are wanted, too.
    has_totals: bool,
    elapsed: Duration,
    before: BTreeMap<GroupKey, Before>,
    stacks: KnownStacks,
}

/// What was counted of a group before.
#[derive(Default)]
struct Before {
    count: Count,
    /// The extremes of each measured argument since the start.
    ends: Vec<Option<NumberEnds>>,
    history: Vec<u32>,
}

impl Snapshots {
    /// Begins to count at intervals of this length, of which so many are kept of each group.
    pub(in crate::cmd) fn new(grouping: StatGrouping, every: Duration, history: usize) -> Self {
        Self {
            grouping,
            every,
            history,
            has_totals: true,
            elapsed: Duration::ZERO,
            before: BTreeMap::new(),
            stacks: KnownStacks::default(),
        }
    }

    /// The same; without `has_totals`, of the time since the start there are counts, but no numbers.
    pub(in crate::cmd) const fn with_totals(mut self, has_totals: bool) -> Self {
        self.has_totals = has_totals;
        self
    }

    /// The names of stacks, which must be known before these are shown.
    pub(in crate::cmd) fn stacks(&self) -> KnownStacks {
        self.stacks.clone()
    }

    /// What was counted since the start, and since the last call.
    pub(in crate::cmd) fn next(&mut self, counted: &HitTotals) -> StatSnapshot {
        let mut sums = Sums::new(counted, &self.grouping, &self.stacks);
        let since = std::mem::replace(&mut self.elapsed, counted.elapsed);
        let mut rows = Vec::new();
        for (key, now) in std::mem::take(&mut sums.counts) {
            let keys = sums.shown(&key);
            let (event, is_span) = (key.event.clone(), key.is_span);
            let before = self.before.entry(key).or_default();
            rows.push(SnapshotRow {
                event,
                is_span,
                keys,
                total: StatSum {
                    count: now.count,
                    lost: now.lost,
                    numbers: match self.has_totals {
                        true => before.total_numbers(&now, &self.grouping),
                        false => Vec::new(),
                    },
                    fates: now.fates,
                },
                interval: before.advance(now, &self.grouping, self.history),
                history: before.history.clone(),
            });
        }
        StatSnapshot {
            elapsed: counted.elapsed,
            interval: counted.elapsed.saturating_sub(since),
            every: self.every,
            measured: sums.measured(&self.grouping),
            rows,
        }
    }
}

impl Before {
    /// The numbers since the start.
    fn total_numbers(
        &mut self,
        now: &Count,
        grouping: &StatGrouping,
    ) -> Vec<Option<CountedNumbers>> {
        let numbers = now.clone().into_numbers(grouping);
        let numbers = numbers.with_ends(&self.ends);
        self.ends = numbers.ends();
        numbers.into_counted()
    }

    /// What was added since.
    fn advance(&mut self, now: Count, grouping: &StatGrouping, history: usize) -> StatSum {
        let new = self.count.advance(now, grouping);
        if history > 0 {
            if self.history.len() >= history {
                self.history.remove(0);
            }
            let count = u32::try_from(new.count);
            self.history.push(count.unwrap_or(u32::MAX));
        }
        StatSum {
            count: new.count,
            lost: new.lost,
            fates: new.fates,
            numbers: new.into_numbers(grouping).into_counted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use usdtrec_record::{AggregateValue, GroupedProbe, HitGroup, ProbeHits};

    use super::super::by::StatBy;
    use super::*;

    fn counted(seconds: u64, others: u64, groups: &[(u32, u64)]) -> HitTotals {
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            is_span: false,
            arguments: vec![None],
            measured: Vec::new(),
        });
        let groups = groups.iter().map(|(number, count)| HitGroup {
            probe: Arc::clone(&probe),
            values: vec![AggregateValue::Number(*number)],
            count: *count,
            numbers: Vec::new(),
        });
        HitTotals {
            elapsed: Duration::from_secs(seconds),
            time: 0,
            hits: vec![ProbeHits {
                event: "a".to_owned(),
                hits: others + 1,
                lost: 1,
            }],
            groups: groups.collect(),
            spans: Vec::new(),
        }
    }

    fn shown(snapshot: &StatSnapshot) -> Vec<String> {
        let rows = snapshot.rows.iter().map(|row| {
            let (interval, total) = (row.interval.count, row.total.count);
            format!("{interval} {total} {:?}", row.history)
        });
        rows.collect()
    }

    /// Groups that come later have a shorter past, and those without hits stay.
    #[test]
    fn snapshots_have_intervals_and_totals() {
        let grouping = StatGrouping {
            keys: vec![StatBy::named("stat", "pid", false).expect("a key")],
            measured: Vec::new(),
        };
        let mut snapshots = Snapshots::new(grouping, Duration::from_secs(1), 2);
        let first = snapshots.next(&counted(1, 0, &[(7, 3), (8, 1)]));
        assert_eq!(shown(&first), ["0 0 [0]", "3 3 [3]", "1 1 [1]"]);
        assert_eq!(first.rows[0].keys, None, "hits in no group");
        assert_eq!(
            (first.rows[0].interval.lost, first.rows[0].total.lost),
            (1, 1)
        );
        let second = snapshots.next(&counted(3, 2, &[(9, 5), (8, 1), (7, 4)]));
        let right = ["2 2 [0, 2]", "1 4 [3, 1]", "0 1 [1, 0]", "5 5 [5]"];
        assert_eq!(shown(&second), right);
        assert_eq!(second.interval, Duration::from_secs(2));
        assert_eq!(second.rows[0].interval.lost, 0);
        let third = snapshots.next(&counted(4, 2, &[(7, 4), (8, 1), (9, 1 << 40)]));
        assert_eq!(
            shown(&third)[3],
            format!("{} {} [5, {}]", (1_u64 << 40) - 5, 1_u64 << 40, u32::MAX)
        );
        assert_eq!(shown(&third)[1], "0 4 [1, 0]");
    }
}
