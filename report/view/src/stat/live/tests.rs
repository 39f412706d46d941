use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_format::schema::Argument;
use usdtrec_format::{StringAt, Value};

use super::super::figures::{StatBucket, StatFigures, StatRange};
use super::super::key::StatKey;
use super::super::snapshot::{SnapshotRow, StatSnapshot, StatSum};
use super::{LiveTable, RowChoice, RowOrder, TableRoom};

fn text(bytes: &str) -> StatKey {
    let value = Value::String(StringAt {
        address: 0,
        bytes: bytes.as_bytes().to_vec(),
        cut: false,
        guessed: false,
        from_file: false,
    });
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
        rows,
    }
}

fn table() -> LiveTable {
    LiveTable::new(false, vec!["url".to_owned()])
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
    assert_eq!(RowOrder::Rate.next(), RowOrder::Total);
    assert_eq!(RowOrder::Key.next(), RowOrder::Rate);
}

/// Values have their percentiles, in their unit.
#[test]
fn values_have_percentiles() {
    let figures = StatFigures {
        argument: Argument {
            unit: Some(usdtrec_format::schema::Unit::Microseconds),
            ..Argument::named("took")
        },
        count: 2,
        sum: 5000,
        range: None,
        buckets: vec![StatBucket {
            values: StatRange {
                least: 2500,
                most: 2500,
            },
            count: 2,
        }],
    };
    let mut with = row(Some("/a"), 2, 2, &[]);
    with.interval.figures.push(figures);
    let shown = shown(vec![with, row(Some("/b"), 1, 1, &[])], room(100, 24));
    assert!(shown.contains("took p50  took p99"), "{shown}");
    assert!(shown.contains("   2.5ms     2.5ms"), "{shown}");
    assert!(shown.lines().last().unwrap().contains(" -  "), "{shown}");
}
