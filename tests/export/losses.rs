//! Lost events, in formats that have a place for them.

use std::fs;

use serde_json::Value as Json;

use super::nasty::Nasty;
use super::parquet::compare;
use super::proto::Message;
use super::readers::READERS;
use crate::common::{Closing, run, test};

/// Values and spans of the hits that are in the trace are right, and each format that has a place for losses has their number.
#[test]
fn values_are_right_beside_lost_events() {
    let (nasty, Closing { events, lost }) = Nasty::record_with_losses();
    let lab = &nasty.lab;
    assert_eq!(nasty.hits().len() as u64, events);
    compare(lab, "trace", &["work", "job"]);

    let dataset = ["export", "-i", "trace", "--to", "parquet", "-o", "dataset"];
    lab.usdtrec(dataset).success();
    let sum = "import duckdb; print(*duckdb.sql(\"SELECT sum(exported), sum(lost), bool_and(exact) FROM 'dataset/table=losses/**/*.parquet'\").fetchall()[0])";
    let python = READERS.program("python");
    let sums = run(lab.at_home(&python, ["-c", sum])).success().stdout;
    assert_eq!(sums.trim(), format!("{events} {lost} True"));

    let perfetto = fs::read(nasty.export("perfetto", &[])).expect("a file");
    let said = format!("{lost} events were lost while recording");
    let packets = Message::parse(&perfetto).messages(1);
    let events = packets.iter().filter_map(|packet| packet.message(11));
    let names = events.filter_map(|event| event.text(23));
    assert_eq!(names.filter(|name| *name == said).count(), 1);

    let report = ["report", "-i", "trace", "--format", "json"];
    let report = lab.usdtrec(report).success().stdout;
    nasty.export("perf", &[]);
    let copied = ["report", "-i", "exported", "--format", "json"];
    let copied = lab.usdtrec(copied).success().stdout;
    for answer in [report, copied] {
        let answer: Json = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["lost"], lost, "{answer}");
    }
    let page = fs::read_to_string(nasty.export("html", &[])).expect("a file");
    assert!(page.contains("id=\"losses\""), "it says what was lost");
}
