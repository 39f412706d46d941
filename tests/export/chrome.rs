//! `--to chrome`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::nasty::{HitFields, Nasty, float_safe};
use crate::common::test;

fn read(path: &Path) -> Vec<Json> {
    let text = fs::read_to_string(path).expect("a file");
    let document: Json = serde_json::from_str(&text).expect("JSON");
    let events = document["traceEvents"].as_array().expect("events");
    events.clone()
}

/// Nanoseconds of a time in microseconds.
fn ns(time: &Json) -> u64 {
    let time = time.as_f64().expect("a time");
    (time * 1000.0).round() as u64
}

/// The hit of an event, or of a side of a span.
fn hit(event: &Json, time: u64, args: &Json) -> HitFields {
    let mut fields: HitFields = ["pid", "tid"]
        .map(|name| (name.to_owned(), event[name].clone()))
        .into();
    fields.insert("time_ns".to_owned(), json!(time));
    let args = args.as_object().expect("args").iter();
    fields.extend(args.map(|(name, value)| (name.clone(), value.clone())));
    fields.remove("span");
    fields
}

/// All hits of an export.
fn hits(events: &[Json]) -> Vec<HitFields> {
    let mut hits = Vec::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let time = ns(&event["ts"]);
        let args = &event["args"];
        match event["ph"].as_str().expect("a phase") {
            "i" => hits.push(hit(event, time, args)),
            "X" => {
                hits.push(hit(event, time, &args["begin"]));
                hits.push(hit(event, time + ns(&event["dur"]), &args["end"]));
            }
            "b" => hits.push(hit(event, time, &args["begin"])),
            "e" => hits.push(hit(event, time, &args["end"])),
            other => panic!("phase {other}"),
        }
    }
    hits.sort_by_key(|hit| (hit["time_ns"].as_u64(), hit["event"].to_string()));
    hits
}

#[test]
fn every_value_and_every_span_is_there() {
    let nasty = Nasty::record(200, &[]);
    let events = read(&nasty.export("chrome", &[]));
    let mut expected = nasty.hits();
    for hit in &mut expected {
        for value in hit.values_mut() {
            *value = float_safe(value);
        }
    }
    expected.sort_by_key(|hit| (hit["time_ns"].as_u64(), hit["event"].to_string()));
    let found = hits(&events);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }

    for name in ["work", "job"] {
        let full = format!("nasty:{name}");
        let of = |phase: &str| {
            let events = events.iter();
            let of = events.filter(|event| event["name"] == *full && event["ph"] == phase);
            of.cloned().collect::<Vec<Json>>()
        };
        let (whole, begun, ended) = (of("X"), of("b"), of("e"));
        let mut open: BTreeMap<&str, &Json> = BTreeMap::new();
        for begin in &begun {
            open.insert(begin["id"].as_str().expect("an id"), begin);
        }
        let own = |event: &Json| event["args"]["self_ns"].as_u64().expect("ns");
        let sum: u64 = whole.iter().chain(&ended).map(own).sum();
        for end in &ended {
            let begin = open.remove(end["id"].as_str().expect("an id"));
            assert!(ns(&begin.expect("a begin")["ts"]) <= ns(&end["ts"]));
        }
        let reason = |event: &&Json| event["args"]["end"].is_string();
        assert!(open.values().all(reason), "{open:?}");
        let lonely = events.iter().filter(|event| {
            event["args"]["span"].is_string()
                && event["args"]["event"]
                    .as_str()
                    .is_some_and(|event| event.contains(name))
        });
        let found = [
            (whole.len() + ended.len()) as u64,
            open.len() as u64,
            lonely.count() as u64,
            sum,
        ];
        assert_eq!(found, nasty.spans(name), "{name}");
    }
    let crossing = events.iter().filter(|event| event["ph"] == "e").count();
    assert!(crossing >= 1, "one crosses another");
}
