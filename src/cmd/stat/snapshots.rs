//! What was counted so far and in each interval, with the intervals before.

use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_record::HitTotals;
use usdtrec_report::stat::{SnapshotRow, StatSnapshot, StatSum};

use super::group_key::GroupKey;
use super::sums::{Count, Sums};

/// What was counted before.
pub(in crate::cmd) struct Snapshots {
    has_keys: bool,
    /// Length that intervals are to have.
    every: Duration,
    /// Number of intervals that are kept of each group. It takes four bytes of each, of 65,536 groups 15 MiB with 60 intervals.
    history: usize,
    elapsed: Duration,
    before: BTreeMap<GroupKey, Before>,
}

/// What was counted of a group before.
#[derive(Default)]
struct Before {
    sum: Count,
    history: Vec<u32>,
}

impl Snapshots {
    /// Begins to count at intervals of this length, of which so many are kept of each group; `has_keys` is whether hits are counted by group.
    pub(in crate::cmd) fn new(has_keys: bool, every: Duration, history: usize) -> Self {
        Self {
            has_keys,
            every,
            history,
            elapsed: Duration::ZERO,
            before: BTreeMap::new(),
        }
    }

    /// What was counted since the start, and since the last call.
    pub(in crate::cmd) fn next(&mut self, counted: &HitTotals) -> StatSnapshot {
        let sums = Sums::new(counted, self.has_keys);
        let since = std::mem::replace(&mut self.elapsed, counted.elapsed);
        let rows = sums.counts.iter().map(|(key, now)| {
            if !self.before.contains_key(key) {
                self.before.insert(key.clone(), Before::default());
            }
            let keys = sums.shown(key);
            let before = self.before.get_mut(key);
            before.map(|before| SnapshotRow {
                event: key.event.clone(),
                keys,
                interval: before.advance(*now, self.history),
                total: sum(*now),
                history: before.history.clone(),
            })
        });
        let rows = rows.flatten().collect();
        StatSnapshot {
            elapsed: counted.elapsed,
            interval: counted.elapsed.saturating_sub(since),
            every: self.every,
            rows,
        }
    }
}

impl Before {
    /// What was added since.
    fn advance(&mut self, now: Count, history: usize) -> StatSum {
        let before = std::mem::replace(&mut self.sum, now);
        let added = sum(Count {
            count: now.count.saturating_sub(before.count),
            lost: now.lost.saturating_sub(before.lost),
        });
        if history > 0 {
            if self.history.len() >= history {
                self.history.remove(0);
            }
            let count = u32::try_from(added.count);
            self.history.push(count.unwrap_or(u32::MAX));
        }
        added
    }
}

const fn sum(Count { count, lost }: Count) -> StatSum {
    StatSum {
        count,
        lost,
        figures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use usdtrec_record::{AggregateValue, GroupedProbe, HitGroup, ProbeHits};

    use super::*;

    fn counted(seconds: u64, others: u64, groups: &[(u32, u64)]) -> HitTotals {
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            arguments: vec![None],
        });
        let groups = groups.iter().map(|(number, count)| HitGroup {
            probe: Arc::clone(&probe),
            values: vec![AggregateValue::Number(*number)],
            count: *count,
        });
        HitTotals {
            elapsed: Duration::from_secs(seconds),
            hits: vec![ProbeHits {
                event: "a".to_owned(),
                hits: others + 1,
                lost: 1,
            }],
            groups: groups.collect(),
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
        let mut snapshots = Snapshots::new(true, Duration::from_secs(1), 2);
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
