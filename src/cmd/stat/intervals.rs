//! What was counted in each interval, from what was counted in all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_record::{HitTotals, MeasuredArgument};
use usdtrec_report::stat::{StatCounts, StatRow};

use super::by::StatBy;
use super::group_key::GroupKey;
use super::numbers::Numbers;

/// What was counted before the interval.
pub(super) struct Intervals {
    keys: Vec<StatBy>,
    measured: Vec<MeasuredArgument>,
    elapsed: Duration,
    counts: BTreeMap<GroupKey, Count>,
}

#[derive(Clone, Default)]
struct Count {
    count: u64,
    lost: u64,
    /// `None` if no group has these keys: of hits that are in none.
    numbers: Option<Numbers>,
}

impl Intervals {
    /// Nothing was counted yet.
    pub(super) fn new(keys: Vec<StatBy>, measured: Vec<MeasuredArgument>) -> Self {
        Self {
            keys,
            measured,
            elapsed: Duration::ZERO,
            counts: BTreeMap::new(),
        }
    }

    /// The counts since the last call, or the start: the most hits first, and of equal counts, by event and keys. Groups without hits in
    /// the interval are left out.
    pub(super) fn next(&mut self, counted: &HitTotals) -> StatCounts {
        let has_keys = !self.keys.is_empty();
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
            let key = GroupKey::of_group(group, &self.keys);
            arguments.insert(group.probe.event.clone(), &group.probe.arguments);
            let sum = counts.entry(key).or_default();
            sum.count += group.count;
            let none = || Numbers::none(&self.measured);
            sum.numbers.get_or_insert_with(none).add(group);
        }
        let earlier = std::mem::take(&mut self.counts);
        let since = std::mem::replace(&mut self.elapsed, counted.elapsed);
        let mut rows = Vec::new();
        for (key, now) in counts {
            let before = earlier.get(&key).cloned().unwrap_or_default();
            let count = now.count - before.count;
            let row = StatRow {
                event: key.event.clone(),
                keys: key.shown(arguments.get(&key.event).map_or(&[], |all| all)),
                count,
                lost: now.lost - before.lost,
                numbers: self.numbers(&now, &before, count).facts(),
            };
            // A probe without a hit is shown, unless it has groups.
            let is_empty = row.count == 0 && row.lost == 0;
            let has_groups = has_keys && arguments.contains_key(&row.event);
            if !is_empty || !has_groups {
                rows.push(row);
            }
            let none = || Numbers::none(&self.measured);
            let numbers = match now.numbers {
                Some(now) if count == 0 => {
                    Some(now.postponed(&before.numbers.unwrap_or_else(none)))
                }
                now => now.map(Numbers::counted),
            };
            self.counts.insert(key, Count { numbers, ..now });
        }
        rows.sort_by_key(|row| Reverse(row.count));
        StatCounts {
            elapsed: counted.elapsed,
            interval: counted.elapsed.saturating_sub(since),
            rows,
        }
    }

    /// The numbers of so many hits between two moments.
    fn numbers(&self, now: &Count, before: &Count, count: u64) -> Numbers {
        match (&now.numbers, &before.numbers) {
            _ if count == 0 => Numbers::none(&self.measured),
            (Some(now), Some(before)) => now.since(before),
            (Some(now), None) => now.clone(),
            (None, _) => Numbers::unknown(&self.measured),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use usdtrec_format::{StringAt, Value};
    use usdtrec_record::{
        AggregateValue, GroupedProbe, HitGroup, NumberBucket, NumberEnds, NumberTotals, ProbeHits,
    };

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
        let mut intervals = Intervals::new(Vec::new(), Vec::new());
        let first = counted(2, &[("b", 3, 1), ("a", 2, 0), ("b", 1, 0)]);
        let first = intervals.next(&first);
        assert_eq!(shown(&first), ["b Some(0) 3 1", "a Some(0) 2 0"]);
        let second = counted(3, &[("b", 4, 1), ("a", 2, 0), ("b", 1, 0), ("c", 7, 0)]);
        let second = intervals.next(&second);
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
            numbers: Vec::new(),
        };
        let pid = StatBy::named("pid").unwrap();
        let mut intervals = Intervals::new(vec![pid], Vec::new());
        let mut first = counted(1, &[("a", 0, 0), ("b", 0, 0)]);
        first.groups = vec![group(2, 3), group(1, 4), group(2, 1)];
        let shown_first = shown(&intervals.next(&first));
        assert_eq!(
            shown_first,
            ["a Some(1) 4 0", "a Some(1) 4 0", "b None 0 0"]
        );
        let mut second = counted(2, &[("a", 2, 0), ("b", 0, 0)]);
        second.groups = vec![group(2, 3), group(1, 4), group(2, 6)];
        let shown_second = shown(&intervals.next(&second));
        assert_eq!(shown_second, ["a Some(1) 5 0", "a None 2 0", "b None 0 0"]);
    }

    /// Numbers are added up before a hit is counted: they are in the interval in which it is counted.
    #[test]
    fn numbers_are_in_the_interval_of_their_hits() {
        let measured = MeasuredArgument {
            name: "n".to_owned(),
            has_histogram: true,
        };
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            arguments: Vec::new(),
        });
        let mut intervals = Intervals::new(Vec::new(), vec![measured]);
        let mut next = |seconds: u64, count: u64, sum: i128, new: Option<i128>| {
            let bucket = NumberBucket {
                from: 7,
                to: 8,
                count: (sum / 7) as u64,
            };
            let totals = NumberTotals {
                count,
                sum,
                ends: new.map(|number| NumberEnds {
                    min: number,
                    max: number,
                }),
                buckets: vec![bucket],
            };
            let mut all = counted(seconds, &[("a", 0, 0)]);
            all.groups = vec![HitGroup {
                probe: Arc::clone(&probe),
                values: Vec::new(),
                count,
                numbers: vec![Some(totals)],
            }];
            let rows = intervals.next(&all).rows;
            let facts = rows[0].numbers[0].clone().expect("numbers");
            let ends = facts.ends.map(|ends| (ends.min, ends.max));
            let in_buckets = facts.distribution.expect("a histogram").count;
            (rows[0].count, facts.count, facts.sum, ends, in_buckets)
        };
        assert_eq!(next(1, 0, 7, Some(7)), (0, 0, 0, None, 0));
        assert_eq!(next(2, 0, 7, None), (0, 0, 0, None, 0));
        assert_eq!(next(3, 2, 14, Some(7)), (2, 2, 14, Some((7, 7)), 2));
        assert_eq!(next(4, 2, 14, None), (0, 0, 0, None, 0));
        assert_eq!(next(5, 3, 21, Some(7)), (1, 1, 7, Some((7, 7)), 1));
    }

    /// Texts of one shape are one group; a text that is cut is marked, and so is its shape.
    #[test]
    fn texts_are_added_up_by_their_shapes() {
        let probe = Arc::new(GroupedProbe {
            event: "a".to_owned(),
            arguments: vec![None],
        });
        let group = |text: &str, cut, count| HitGroup {
            probe: Arc::clone(&probe),
            values: vec![AggregateValue::Argument(Value::String(StringAt {
                address: 0,
                bytes: text.into(),
                cut,
                guessed: false,
                from_file: false,
            }))],
            count,
            numbers: Vec::new(),
        };
        let shape = StatBy::named("query:shape").unwrap();
        let mut intervals = Intervals::new(vec![shape], Vec::new());
        let mut all = counted(1, &[("a", 0, 0)]);
        all.groups = vec![
            group("select 1", false, 2),
            group("select 22", false, 3),
            group("select 3", true, 4),
        ];
        let rows = intervals.next(&all).rows;
        let counts: Vec<u64> = rows.iter().map(|row| row.count).collect();
        assert_eq!(counts, [5, 4]);
        let right = HitGroup {
            values: group("select ?", false, 0).values,
            ..group("", false, 0)
        };
        let key = GroupKey::of_group(&right, &[StatBy::named("query").unwrap()]);
        assert_eq!(rows[0].keys, key.shown(&[]));
    }
}
