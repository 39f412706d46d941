//! What was counted in each interval, from what was counted in all.

use std::sync::Arc;
use std::time::Duration;

use usdtrec_format::{NumberBucket, StringAt, Value};
use usdtrec_record::{
    AggregateValue, BucketCount, GroupedProbe, HitGroup, HitTotals, MeasuredArgument, NumberEnds,
    NumberTotals, ProbeHits,
};
use usdtrec_report::stat::StatCounts;

use super::by::StatBy;
use super::group_key::{GroupKey, KnownStacks};
use super::snapshots::Snapshots;
use super::sums::StatGrouping;
use crate::terminal::Usage;

/// What was counted in each interval.
struct Intervals(Snapshots);

impl Intervals {
    fn new(grouping: StatGrouping) -> Self {
        Self(Snapshots::new(grouping, Duration::ZERO, 0))
    }

    fn next(&mut self, counted: &HitTotals) -> StatCounts {
        StatCounts::of_interval(&self.0.next(counted))
    }
}

/// Intervals of hits counted by a key.
fn by_key(name: &str) -> Intervals {
    Intervals::new(StatGrouping {
        keys: vec![by(name)],
        measured: Vec::new(),
    })
}

fn by(name: &str) -> StatBy {
    StatBy::named("stat", name, false).expect("a key")
}

fn counted(seconds: u64, hits: &[(&str, u64, u64)]) -> HitTotals {
    let hits = hits.iter().map(|(event, hits, lost)| ProbeHits {
        event: (*event).to_owned(),
        hits: *hits,
        lost: *lost,
    });
    HitTotals {
        elapsed: Duration::from_secs(seconds),
        time: 0,
        hits: hits.collect(),
        groups: Vec::new(),
        spans: Vec::new(),
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
fn an_interval_without_a_unit_is_milliseconds() {
    let parsed = |text| super::interval(text).map_err(|error| error.0);
    assert_eq!(parsed("1000"), Ok(Duration::from_secs(1)));
    assert_eq!(parsed("1000.5"), Ok(Duration::from_micros(1_000_500)));
    assert_eq!(parsed("0.5s"), Ok(Duration::from_millis(500)));
    assert!(parsed(".").is_err() && parsed("9.5").is_err());
}

#[test]
fn an_interval_that_is_refused_is_as_it_was_typed() {
    for text in ["0", "0s", "1.2.3"] {
        let Usage(refused) = super::interval(text).expect_err(text);
        assert!(refused.ends_with(&format!("found {text:?}")), "{refused}");
    }
}

#[test]
fn intervals_add_up_to_the_whole() {
    let mut intervals = Intervals::new(StatGrouping::default());
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
        is_span: false,
        arguments: vec![None],
        measured: Vec::new(),
    });
    let group = |number, count| HitGroup {
        probe: Arc::clone(&probe),
        values: vec![AggregateValue::Number(number)],
        count,
        numbers: Vec::new(),
    };
    let mut intervals = by_key("pid");
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
        of_span: None,
    };
    let probe = Arc::new(GroupedProbe {
        event: "a".to_owned(),
        is_span: false,
        arguments: Vec::new(),
        measured: vec![None],
    });
    let mut intervals = Intervals::new(StatGrouping {
        keys: Vec::new(),
        measured: vec![measured],
    });
    let mut next = |seconds: u64, count: u64, sum: i128, new: Option<i128>| {
        let bucket = BucketCount {
            bucket: NumberBucket::from_number(7),
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
            unbucketed: 0,
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

/// Strings of one shape are one group; a string that is cut is marked, and so is its shape.
#[test]
fn strings_are_added_up_by_their_shapes() {
    let probe = Arc::new(GroupedProbe {
        event: "a".to_owned(),
        is_span: false,
        arguments: vec![None],
        measured: Vec::new(),
    });
    let group = |text: &str, cut, count| HitGroup {
        probe: Arc::clone(&probe),
        values: vec![AggregateValue::Argument(Value::String(StringAt {
            cut,
            ..StringAt::of_bytes(text.into())
        }))],
        count,
        numbers: Vec::new(),
    };
    let mut intervals = by_key("query:shape");
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
    let key = GroupKey::for_group(&right, &[by("query")], &KnownStacks::default());
    assert_eq!(rows[0].keys, key.shown(&[]));
}
