//! What was counted in each interval, from what was counted in all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_record::HitTotals;
use usdtrec_report::stat::{StatCounts, StatRow};

use super::group_key::GroupKey;
use super::sums::{Count, Sums};

/// What was counted before the interval.
#[derive(Default)]
pub(super) struct Intervals {
    elapsed: Duration,
    counts: BTreeMap<GroupKey, Count>,
}

impl Intervals {
    /// The counts since the last call, or the start: the most hits first, and of equal counts, by event and keys. Groups without hits in
    /// the interval are left out.
    pub(super) fn next(&mut self, counted: &HitTotals, has_keys: bool) -> StatCounts {
        let sums = Sums::new(counted, has_keys);
        let since = std::mem::replace(&mut self.elapsed, counted.elapsed);
        let rows = sums.counts.iter().filter_map(|(key, now)| {
            let before = self.counts.get(key).copied().unwrap_or_default();
            let row = StatRow {
                event: key.event.clone(),
                keys: sums.shown(key),
                count: now.count - before.count,
                lost: now.lost - before.lost,
            };
            // A probe without a hit is shown, unless it has groups.
            let is_empty = row.count == 0 && row.lost == 0;
            let has_groups = has_keys && sums.has_groups(&row.event);
            (!is_empty || !has_groups).then_some(row)
        });
        let mut rows: Vec<StatRow> = rows.collect();
        self.counts = sums.counts;
        rows.sort_by_key(|row| Reverse(row.count));
        StatCounts {
            elapsed: counted.elapsed,
            interval: counted.elapsed.saturating_sub(since),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use usdtrec_record::{AggregateValue, GroupedProbe, HitGroup, ProbeHits};

    use super::*;

    fn counted(seconds: u64, hits: &[(&str, u64, u64)]) -> HitTotals {
        let hits = hits.iter().map(|(event, hits, lost)| ProbeHits {
            event: (*event).to_owned(),
            hits: *hits,
            lost: *lost,
        });
        HitTotals {
            elapsed: Duration::from_secs(seconds),
            hits: hits.collect(),
            groups: Vec::new(),
        }
    }

    fn shown(counts: &StatCounts) -> Vec<String> {
        let rows = counts.rows.iter();
        let shown = rows.map(|row| {
            let keys = row.keys.as_ref().map(Vec::len);
            format!("{} {:?} {} {}", row.event, keys, row.count, row.lost)
        });
        shown.collect()
    }

    #[test]
    fn intervals_add_up_to_the_whole() {
        let mut intervals = Intervals::default();
        let first = counted(2, &[("b", 3, 1), ("a", 2, 0), ("b", 1, 0)]);
        let first = intervals.next(&first, false);
        assert_eq!(shown(&first), ["b Some(0) 3 1", "a Some(0) 2 0"]);
        let second = counted(3, &[("b", 4, 1), ("a", 2, 0), ("b", 1, 0), ("c", 7, 0)]);
        let second = intervals.next(&second, false);
        let right = ["c Some(0) 7 0", "b Some(0) 1 0", "a Some(0) 0 0"];
        assert_eq!(shown(&second), right);
        assert_eq!(
            (second.elapsed.as_secs(), second.interval.as_secs()),
            (3, 1)
        );
    }

    /// Groups of sites with other types are one; those without a hit in the interval are left out, and so are no others.
    #[test]
    fn equal_keys_are_one_group() {
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            arguments: vec![None],
        });
        let group = |number, count| HitGroup {
            probe: Arc::clone(&probe),
            values: vec![AggregateValue::Number(number)],
            count,
        };
        let mut intervals = Intervals::default();
        let mut first = counted(1, &[("a", 0, 0), ("b", 0, 0)]);
        first.groups = vec![group(2, 3), group(1, 4), group(2, 1)];
        let shown_first = shown(&intervals.next(&first, true));
        assert_eq!(
            shown_first,
            ["a Some(1) 4 0", "a Some(1) 4 0", "b None 0 0"]
        );
        let mut second = counted(2, &[("a", 2, 0), ("b", 0, 0)]);
        second.groups = vec![group(2, 3), group(1, 4), group(2, 6)];
        let shown_second = shown(&intervals.next(&second, true));
        assert_eq!(shown_second, ["a Some(1) 5 0", "a None 2 0", "b None 0 0"]);
    }
}
