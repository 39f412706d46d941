use std::collections::BTreeMap;
use std::time::Duration;

use usdtrec_analysis::counted_numbers::CountedNumbers;
use usdtrec_format::schema::{Argument, Unit};
use usdtrec_format::{NumberBucket, NumberEnds};

use super::super::key::StatKey;
use super::super::snapshot::{SnapshotRow, StatSnapshot, StatSum};
use super::{MAX_SERIES, PrometheusView};

fn row(key: Option<StatKey>, count: u64) -> SnapshotRow {
    SnapshotRow {
        event: "sdt_app:req".to_owned(),
        is_span: false,
        keys: key.map(|key| vec![key]),
        interval: StatSum::default(),
        total: StatSum {
            count,
            ..StatSum::default()
        },
        history: Vec::new(),
    }
}

fn snapshot(rows: Vec<SnapshotRow>) -> StatSnapshot {
    StatSnapshot {
        elapsed: Duration::from_secs(3),
        interval: Duration::from_secs(1),
        every: Duration::from_secs(1),
        measured: BTreeMap::new(),
        rows,
    }
}

fn comm(name: &[u8]) -> Option<StatKey> {
    Some(StatKey::Comm(name.to_vec()))
}

fn samples(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn probes_without_keys_are_counters() {
    let mut probe = row(None, 7);
    probe.keys = Some(Vec::new());
    probe.total.lost = 2;
    let shown = PrometheusView::new(&[]).show(&snapshot(vec![probe]));
    let labels = "provider=\"app\",probe=\"req\"";
    assert_eq!(
        shown,
        format!(
            "# HELP usdtrec_hits_total Hits of the probe since the start of the recording.\n\
             # TYPE usdtrec_hits_total counter\n\
             usdtrec_hits_total{{{labels}}} 7\n\
             # HELP usdtrec_lost_hits_total Hits that were not counted, because the filter of the probe could not be evaluated.\n\
             # TYPE usdtrec_lost_hits_total counter\n\
             usdtrec_lost_hits_total{{{labels}}} 2\n"
        )
    );
}

/// No label ends early, and no two samples have the same labels.
#[test]
fn labels_are_escaped_and_each_is_once() {
    let mut view = PrometheusView::new(&["comm".to_owned()]);
    let shown = view.show(&snapshot(vec![
        row(comm(b"a\"} 9\nb\\"), 5),
        row(comm(b"\x1b"), 2),
        row(comm(b"\\x1b"), 1),
        row(None, 3),
    ]));
    let begin = "usdtrec_hits_total{provider=\"app\",probe=\"req\"";
    assert_eq!(
        samples(&shown)[..3],
        [
            format!(r#"{begin},comm="\\x1b"}} 3"#),
            format!(r#"{begin},comm="a\"}} 9\\nb\\"}} 5"#),
            format!(r#"{begin},others="true"}} 3"#),
        ]
    );
}

/// A counter never decreases: a group that came too late stays among the others, and the sum of all is that of the hits.
#[test]
fn further_groups_are_others_for_good() {
    let mut view = PrometheusView::new(&["pid".to_owned()]);
    let rows = |count: fn(usize) -> u64, groups: usize| {
        let rows = (0..groups).map(|pid| row(Some(StatKey::Number(pid as u32)), count(pid)));
        let rows = rows.chain([row(None, 0)]);
        snapshot(rows.collect())
    };
    let others = |shown: &str| {
        let mut lines = samples(shown).into_iter();
        let line = lines.find(|line| line.contains("others=\"true\""));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        number.expect("a number")
    };
    let first = view.show(&rows(|_| 1, 10));
    assert_eq!((samples(&first).len(), others(&first)), (12, 0));
    // Groups with more hits are the first of the new ones.
    let second = view.show(&rows(|pid| pid as u64, MAX_SERIES + 5));
    assert_eq!(samples(&second).len(), MAX_SERIES + 2);
    assert_eq!(others(&second), 10 + 11 + 12 + 13 + 14);
    let third = view.show(&rows(|pid| 1_000_000 - pid as u64, MAX_SERIES + 5));
    let late = (10..15).map(|pid| 1_000_000 - pid).sum::<u64>();
    assert_eq!(others(&third), late);
}

/// Histograms are cumulative, have always the same bounds, and are in the base unit.
#[test]
fn values_are_histograms() {
    let bucket = NumberBucket::from_number;
    let took = Argument {
        unit: Some(Unit::Microseconds),
        description: Some("time in\nthe \\ queue".to_owned()),
        ..Argument::named("took")
    };
    let mut probe = row(comm(b"a"), 4);
    probe.total.numbers.push(Some(CountedNumbers {
        count: 4,
        sum: 2500,
        ends: Some(NumberEnds { min: 3, max: 1200 }),
        histogram: Some([(bucket(3), 2), (bucket(1024), 2)].into_iter().collect()),
        unbucketed: 0,
    }));
    let mut others = row(None, 1);
    others.total.numbers.push(None);
    let mut snapshot = snapshot(vec![probe, others]);
    let measured = vec![Some(took)];
    snapshot.measured.insert("sdt_app:req".to_owned(), measured);
    let shown = PrometheusView::new(&["comm".to_owned()]).show(&snapshot);
    let name = "usdtrec_value_app_req_took_seconds";
    let help = format!("# HELP {name} took of app:req: time in\\\\nthe \\\\ queue\n");
    assert!(shown.contains(&help), "{shown}");
    assert!(shown.contains(&format!("# TYPE {name} histogram\n")));
    let labels = "provider=\"app\",probe=\"req\",comm=\"a\"";
    for (le, count) in [
        ("0", 0),
        ("0.000001", 0),
        ("0.000003", 2),
        ("0.001023", 2),
        ("0.002047", 4),
        ("+Inf", 4),
    ] {
        let line = format!("{name}_bucket{{{labels},le=\"{le}\"}} {count}\n");
        assert!(shown.contains(&line), "{line}{shown}");
    }
    for line in [
        format!("{name}_sum{{{labels}}} 0.0025\n"),
        format!("{name}_count{{{labels}}} 4\n"),
        format!("usdtrec_minimum_app_req_took_seconds{{{labels}}} 0.000003\n"),
        format!("usdtrec_maximum_app_req_took_seconds{{{labels}}} 0.0012\n"),
    ] {
        assert!(shown.contains(&line), "{line}{shown}");
    }
    let buckets = shown.matches("_bucket{").count();
    assert_eq!(buckets, 38, "all bounds, and infinity: {shown}");
    let of_others = shown.matches(",others=\"true\"").count();
    assert_eq!(of_others, 1, "their hits, and no numbers: {shown}");
}

/// A hit that comes while counts are read is in its bucket, and in the count of the next reading.
#[test]
fn no_bucket_has_more_than_all() {
    let bucket = NumberBucket::from_number;
    let mut probe = row(None, 4);
    probe.keys = Some(Vec::new());
    probe.total.numbers.push(Some(CountedNumbers {
        count: 4,
        sum: 17,
        ends: Some(NumberEnds { min: 3, max: 4 }),
        histogram: Some([(bucket(3), 3), (bucket(4), 2)].into_iter().collect()),
        unbucketed: 0,
    }));
    let mut snapshot = snapshot(vec![probe]);
    let measured = vec![Some(Argument::named("n"))];
    snapshot.measured.insert("sdt_app:req".to_owned(), measured);
    let shown = PrometheusView::new(&[]).show(&snapshot);
    let name = "usdtrec_value_app_req_n";
    let labels = "provider=\"app\",probe=\"req\"";
    for line in [
        format!("{name}_bucket{{{labels},le=\"3\"}} 3\n"),
        format!("{name}_bucket{{{labels},le=\"7\"}} 5\n"),
        format!("{name}_bucket{{{labels},le=\"+Inf\"}} 5\n"),
        format!("{name}_count{{{labels}}} 5\n"),
    ] {
        assert!(shown.contains(&line), "{line}{shown}");
    }
}

/// Two arguments whose names are the same words have metrics of their own.
#[test]
fn metrics_of_arguments_are_each_once() {
    let mut probe = row(None, 4);
    probe.keys = Some(Vec::new());
    let numbers = |sum| CountedNumbers {
        count: 1,
        sum,
        ..CountedNumbers::default()
    };
    probe.total.numbers = vec![Some(numbers(5)), Some(numbers(6))];
    let mut snapshot = snapshot(vec![probe]);
    let measured = ["maxSize", "max_size"].map(|name| Some(Argument::named(name)));
    snapshot
        .measured
        .insert("sdt_app:req".to_owned(), measured.into());
    let shown = PrometheusView::new(&[]).show(&snapshot);
    for (name, sum) in [("max_size", 5), ("max_size_2", 6)] {
        let line =
            format!("usdtrec_value_app_req_{name}_sum{{provider=\"app\",probe=\"req\"}} {sum}\n");
        assert!(shown.contains(&line), "{line}{shown}");
    }
}
