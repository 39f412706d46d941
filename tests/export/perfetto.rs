//! `--to perfetto`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value as Json, json};

use super::nasty::{HitFields, Nasty};
use super::proto::{Field, Message};
use crate::common::{Build, Lab, test};

/// Names by their numbers.
type Numbered = BTreeMap<u64, String>;

fn names(interned: &Message<'_>, field: u64) -> Numbered {
    let entries = interned.messages(field).into_iter();
    let named = entries.map(|entry| {
        (
            entry.number(1).expect("a number"),
            entry.text(2).unwrap_or_default(),
        )
    });
    named.collect()
}

/// A float as JSON has it.
pub(super) fn float(number: f64) -> Json {
    match number {
        n if n.is_nan() => json!("NaN"),
        n if n == f64::INFINITY => json!("inf"),
        n if n == f64::NEG_INFINITY => json!("-inf"),
        n => json!(n),
    }
}

fn value(annotation: &Message<'_>, known: &Numbered) -> Json {
    let entries = annotation.messages(11);
    if !entries.is_empty() {
        let entries = entries.iter();
        let entries = entries.map(|entry| (name(entry, known), value(entry, known)));
        return Json::Object(entries.collect());
    }
    let (field, value) = annotation.fields().last().expect("a value");
    match (field, value) {
        (2, Field::Varint(is)) => json!(*is != 0),
        (3, Field::Varint(number)) => json!(number),
        (4, Field::Varint(number)) => json!(number.cast_signed()),
        (5, Field::Fixed(bits)) => float(f64::from_bits(*bits)),
        (6, Field::Bytes(text)) => json!(std::str::from_utf8(text).expect("UTF-8")),
        (7, Field::Varint(address)) => json!(format!("{address:#x}")),
        // A dictionary without entries.
        (1, _) => json!({}),
        other => panic!("{other:?}"),
    }
}

fn name(annotation: &Message<'_>, known: &Numbered) -> String {
    known[&annotation.number(1).expect("a name")].clone()
}

/// What a trace has, besides hits.
#[derive(Default)]
pub(super) struct Read {
    pub(super) hits: Vec<HitFields>,
    /// Of each name of spans: how many ended, how many did not, ns in them and in no span of the name within them.
    spans: BTreeMap<String, [u64; 3]>,
    no_begin: BTreeMap<String, u64>,
    /// Of each flow, how many events have it.
    flows: BTreeMap<u64, usize>,
    stacks: usize,
}

/// A hit of annotations; those of the other side are left out.
fn hit(annotations: &Map<String, Json>, prefix: &str, time: u64) -> HitFields {
    let mut fields = HitFields::new();
    fields.insert("time_ns".to_owned(), json!(time));
    for known in ["missing", "cut", "bytes", "numbers", "cpu"] {
        if let Some(value) = annotations.get(&format!("{prefix}{known}")) {
            fields.insert(known.to_owned(), value.clone());
        }
    }
    let args = if prefix.is_empty() { "args" } else { "end" };
    let args = annotations.get(args).cloned().unwrap_or_else(|| json!({}));
    fields.insert("args".to_owned(), args);
    fields
}

pub(super) fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut annotation_names = Numbered::new();
    let mut event_names = Numbered::new();
    let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut events: Vec<(u64, Message<'_>)> = Vec::new();
    for packet in Message::parse(bytes).messages(1) {
        if let Some(interned) = packet.message(12) {
            annotation_names.extend(names(&interned, 3));
            event_names.extend(names(&interned, 2));
        }
        if let Some(event) = packet.message(11) {
            events.push((packet.number(8).expect("a time"), event));
        }
    }
    // As readers do: by time, equal ones in the order of the file.
    events.sort_by_key(|(time, _)| *time);
    for (time, event) in events {
        let annotations = event.messages(4);
        let annotations = annotations.iter();
        let annotations =
            annotations.map(|one| (name(one, &annotation_names), value(one, &annotation_names)));
        let annotations: Map<String, Json> = annotations.collect();
        let track = event.number(11).expect("a track");
        let called = event.number(10).map(|id| event_names[&id].clone());
        for flow in event.all(47).chain(event.all(48)) {
            let Field::Fixed(flow) = flow else {
                panic!("a flow is {flow:?}");
            };
            *read.flows.entry(*flow).or_default() += 1;
        }
        read.stacks += usize::from(event.number(56).is_some());
        match event.number(9).expect("a type") {
            1 => {
                let called = called.expect("a name");
                let counts = read.spans.entry(called.clone()).or_default();
                match annotations.get("span") {
                    Some(_) => counts[1] += 1,
                    None => open.entry(track).or_default().push(called),
                }
                read.hits.push(hit(&annotations, "", time));
            }
            2 => {
                let called = open.get_mut(&track).and_then(Vec::pop).expect("a begin");
                let counts = read.spans.get_mut(&called).expect("counts");
                counts[0] += 1;
                counts[2] += annotations["self_ns"].as_u64().expect("ns");
                read.hits.push(hit(&annotations, "end_", time));
            }
            3 if annotations.is_empty() => {}
            3 => {
                if annotations.contains_key("span") {
                    *read.no_begin.entry(called.expect("a name")).or_default() += 1;
                }
                read.hits.push(hit(&annotations, "", time));
            }
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?}");
    read.hits.sort_by_key(|hit| hit["time_ns"].as_u64());
    read
}

#[test]
fn every_value_and_every_span_is_there() {
    let nasty = Nasty::record(200, &["-g"]);
    let read = read(&fs::read(nasty.export("perfetto", &[])).expect("a file"));
    let mut expected = nasty.hits();
    for hit in &mut expected {
        for name in ["pid", "tid", "event"] {
            hit.remove(name);
        }
        // A value that is missing is in `missing` alone.
        let args = hit.get_mut("args").and_then(Json::as_object_mut);
        args.expect("args").retain(|_, value| !value.is_null());
    }
    assert_eq!(read.hits.len(), expected.len());
    for (found, expected) in read.hits.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    for name in ["work", "job"] {
        let [ended, open, own] = read.spans[&format!("nasty:{name}")];
        let done = format!("sdt_nasty:{name}__done");
        let lonely = read.no_begin.get(&done).copied().unwrap_or(0);
        assert_eq!([ended, open, lonely, own], nasty.spans(name), "{name}");
    }
    assert!(read.stacks > 200, "{}", read.stacks);
}

#[test]
fn a_span_that_ends_on_another_thread_flows_there() {
    let nasty = Nasty::record(3, &[]);
    let trace = nasty.export("perfetto", &["--span", "nasty:job", "--key", "job"]);
    let read = read(&fs::read(trace).expect("a file"));
    assert_eq!(read.spans["nasty:job"][..2], [2, 0]);
    assert_eq!(read.flows.values().collect::<Vec<_>>(), [&2]);
    assert_eq!(read.spans.len(), 1, "this span alone");
}

/// A bar of a track.
#[derive(Debug, PartialEq)]
struct Bar {
    from: u64,
    until: Option<u64>,
    /// Why it has no end in the trace.
    remark: Option<String>,
}

/// The bars of an export, by their begins.
fn bars(bytes: &[u8]) -> Vec<Bar> {
    let mut annotation_names = Numbered::new();
    let (mut bars, mut open) = (Vec::<Bar>::new(), BTreeMap::<_, Vec<usize>>::new());
    let mut events = Vec::new();
    for packet in Message::parse(bytes).messages(1) {
        if let Some(interned) = packet.message(12) {
            annotation_names.extend(names(&interned, 3));
        }
        if let Some(event) = packet.message(11) {
            events.push((packet.number(8).expect("a time"), event));
        }
    }
    events.sort_by_key(|(time, _)| *time);
    for (time, event) in events {
        match event.number(9) {
            Some(1) => {
                let annotations = event.messages(4);
                let mut annotations = annotations.iter();
                let span = annotations.find(|one| name(one, &annotation_names) == "span");
                let remark = span.map(|one| value(one, &annotation_names));
                open.entry(event.number(11)).or_default().push(bars.len());
                bars.push(Bar {
                    from: time,
                    until: None,
                    remark: remark.and_then(|text| Some(text.as_str()?.to_owned())),
                });
            }
            Some(2) => {
                let of_track = open.get_mut(&event.number(11));
                let at = of_track.and_then(Vec::pop).expect("a bar");
                bars[at].until = Some(time);
            }
            _ => {}
        }
    }
    bars
}

/// A span without an end, after which another one began at its level, ends there at the latest, not with the recording.
#[test]
fn an_unfinished_span_ends_where_the_next_one_begins() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "failed.c", "failed");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_failed:*@{program}");
    lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", program])
        .success();
    lab.usdtrec(["export", "-i", "trace", "--to", "perfetto", "-o", "picture"])
        .success();
    let bars = bars(&fs::read(lab.file("picture")).expect("a file"));
    let events = lab.events("trace");
    let times = |name: &str| -> Vec<u64> {
        let named = events.iter().filter(|event| event.name() == name);
        named.map(|event| event.time_ns).collect()
    };
    let (begins, ends) = (times("query__start"), times("query__done"));
    assert_eq!((begins.len(), ends.len()), (4, 3));
    let ends = [ends[0], begins[2], ends[1], ends[2]];
    let expected = begins.iter().zip(ends).enumerate();
    let expected: Vec<Bar> = expected
        .map(|(number, (from, until))| Bar {
            from: *from,
            until: Some(until),
            remark: (number == 1).then(|| "unfinished".to_owned()),
        })
        .collect();
    assert_eq!(bars, expected);
}
