use std::collections::BTreeMap;
use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::counted_numbers::CountedNumbers;
use usdtrec_format::schema::{Argument, Unit};
use usdtrec_format::{NumberBucket, NumberEnds, StringAt, Value};

use super::super::key::StatKey;
use super::super::numbers::StatArgument;
use super::super::snapshot::{SnapshotRow, StatSnapshot, StatSum};
use super::{LiveTable, RowChoice, RowOrder, TableRoom};

fn text(bytes: &str) -> StatKey {
    let value = Value::String(StringAt::of_bytes(bytes.into()));
    StatKey::Argument {
        value,
        argument: None,
    }
}

fn sum(count: u64) -> StatSum {
    StatSum {
        count,
        ..StatSum::default()
    }
}

fn row(key: Option<&str>, count: u64, total: u64, history: &[u32]) -> SnapshotRow {
    SnapshotRow {
        event: "sdt_app:req".to_owned(),
        is_span: false,
        keys: key.map(|key| vec![text(key)]),
        interval: sum(count),
        total: sum(total),
        history: history.to_vec(),
    }
}

fn snapshot(rows: Vec<SnapshotRow>) -> StatSnapshot {
    StatSnapshot {
        elapsed: Duration::from_secs(3),
        interval: Duration::from_micros(1_000_300),
        every: Duration::from_secs(1),
        measured: BTreeMap::new(),
        rows,
    }
}

fn table() -> LiveTable {
    LiveTable::new(false, vec!["url".to_owned()], Vec::new())
}

fn room(columns: usize, lines: usize) -> Option<TableRoom> {
    Some(TableRoom { columns, lines })
}

fn shown(rows: Vec<SnapshotRow>, room: Option<TableRoom>) -> String {
    table().show(&snapshot(rows), &RowChoice::default(), room)
}

/// What programs wrote moves no cursor, and lines are as wide as the terminal at most, with characters of two columns, too.
#[test]
fn lines_fit_the_terminal() {
    let long = "漢字".repeat(100);
    for columns in [20, 40, 80, 81, 200] {
        let shown = shown(
            vec![
                row(Some("/\x1b[2J\u{202e}"), 5, 9, &[0, 1, 4, 5]),
                row(Some(&long), 1000, u64::MAX / 4, &[1000; 60]),
                row(None, 3, 3, &[0, 0, 0, 3]),
            ],
            room(columns, 24),
        );
        assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown}");
        for line in shown.lines() {
            assert!(line.width() <= columns, "{columns}: {line:?}");
        }
        assert_eq!(shown.lines().count(), 5, "{shown}");
    }
    let wide = shown(vec![row(Some("/\x1b[2J"), 5, 9, &[1, 8])], room(200, 24));
    assert_eq!(
        wide,
        format!(
            "# 3.0 s: 5 events in 1.00 s, 9 in all, 0 lost; app:req\n\
             url        Events       /s    Total  Last 60s\n\
             /\\x1b[2J        5     5.00        9  {}▂█\n",
            " ".repeat(58)
        )
    );
}

/// Rows that have no room are counted; without a terminal there are those of the interval alone, without their past.
#[test]
fn rows_beyond_the_height_are_counted() {
    let keys: Vec<String> = (0..30).map(|number| format!("key {number:02}")).collect();
    let rows = keys
        .iter()
        .enumerate()
        .map(|(at, key)| row(Some(key), at as u64 % 7, 10, &[1]));
    let rows: Vec<SnapshotRow> = rows.collect();
    let cut = shown(rows.clone(), room(80, 10));
    let lines: Vec<&str> = cut.lines().collect();
    assert_eq!(lines.len(), 10, "{cut}");
    assert!(lines[2].starts_with("key 06 "), "the most hits: {cut}");
    assert_eq!(lines[9], "… 23 more");
    let whole = shown(rows, None);
    let zeros = (0..30).filter(|at| at % 7 == 0).count();
    assert_eq!(whole.lines().count(), 2 + 30 - zeros, "{whole}");
    assert!(!whole.contains("Last") && whole.contains("app:req"));
}

#[test]
fn rows_are_chosen_and_sorted() {
    let rows = vec![
        row(Some("/a"), 1, 50, &[]),
        row(Some("/API/b"), 2, 20, &[]),
        row(Some("/api/c"), 3, 10, &[]),
    ];
    let shown = |order, filter: &str| {
        let choice = RowChoice {
            order,
            filter: filter.to_owned(),
        };
        let table = table().show(&snapshot(rows.clone()), &choice, room(80, 24));
        let keys = table
            .lines()
            .skip(2)
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned());
        keys.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(RowOrder::Rate, ""), "/api/c /API/b /a");
    assert_eq!(shown(RowOrder::Total, ""), "/a /API/b /api/c");
    assert_eq!(shown(RowOrder::Key, "api"), "/API/b /api/c");
    assert_eq!(shown(RowOrder::Rate, "REQ"), "/api/c /API/b /a");
    assert_eq!(shown(RowOrder::Rate, "none"), "");
    assert_eq!(RowOrder::Rate.next(false), RowOrder::Total);
    assert_eq!(RowOrder::Key.next(false), RowOrder::Rate);
    assert_eq!(RowOrder::Rate.next(true), RowOrder::P99);
}

/// Numbers have their percentiles, or without a histogram their sum and mean, in the unit of their argument.
#[test]
fn numbers_have_figures() {
    let took = Argument {
        unit: Some(Unit::Microseconds),
        ..Argument::named("took")
    };
    let shown = |has_histogram: bool, unit: bool| {
        let bucket = NumberBucket::from_number(2500);
        let numbers = CountedNumbers {
            count: 2,
            sum: 5000,
            ends: Some(NumberEnds {
                min: 2500,
                max: 2500,
            }),
            histogram: has_histogram.then(|| [(bucket, 2)].into_iter().collect()),
            unbucketed: 0,
        };
        let mut with = row(Some("/a"), 2, 2, &[]);
        with.interval.numbers.push(Some(numbers));
        let mut without = row(Some("/b"), 1, 1, &[]);
        without.interval.numbers.push(None);
        let mut snapshot = snapshot(vec![with, without]);
        if unit {
            let measured = vec![Some(took.clone())];
            snapshot.measured.insert("sdt_app:req".to_owned(), measured);
        }
        let argument = StatArgument {
            name: "took".to_owned(),
            has_histogram,
        };
        let table = LiveTable::new(false, vec!["url".to_owned()], vec![argument]);
        table.show(&snapshot, &RowChoice::default(), room(100, 24))
    };
    let percentiles = shown(true, true);
    assert!(percentiles.contains("    p50      p99"), "{percentiles}");
    assert!(percentiles.contains("  2.5ms    2.5ms"), "{percentiles}");
    let last = percentiles.lines().last().unwrap();
    assert!(last.ends_with("      -        -"), "{percentiles}");
    let plain = shown(false, false);
    assert!(plain.contains("    sum     mean"), "{plain}");
    assert!(plain.contains("   5000   2500.0"), "{plain}");
}
