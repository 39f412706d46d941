//! `--to firefox`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::firefox_profile::Profile;
use super::nasty::{HitFields, KNOWN, Nasty, float_safe, is_frame, script_hits};
use crate::common::{Lab, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// A marker.
#[derive(Debug)]
struct Marker {
    name: String,
    begin: u64,
    end: Option<u64>,
    phase: u64,
    pid: Json,
    tid: Json,
    data: Json,
}

fn markers(profile: &Profile) -> Vec<Marker> {
    let mut all = Vec::new();
    for thread in profile.threads() {
        let table = &thread["markers"];
        let rows = table["length"].as_u64().expect("a length") as usize;
        for row in 0..rows {
            let end = &table["endTime"][row];
            let pid = thread["pid"].as_str().expect("a text");
            all.push(Marker {
                name: profile.string(&table["name"][row]).to_owned(),
                begin: profile.time(&table["startTime"][row]),
                end: (!end.is_null()).then(|| profile.time(end)),
                phase: table["phase"][row].as_u64().expect("a phase"),
                pid: pid.parse::<i64>().map_or(Json::Null, |pid| json!(pid)),
                tid: thread["tid"].clone(),
                data: table["data"][row].clone(),
            });
        }
    }
    all
}

/// The hit of a side of a marker.
fn hit(marker: &Marker, time: u64, side: &str) -> HitFields {
    let data = marker.data.as_object().expect("an object");
    let (values, details) = match side {
        "" => ("args:", ""),
        _ => ("end:", "end_"),
    };
    let fields_of = |prefix: &str| {
        let fields = data.iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(prefix)?;
            Some((name.to_owned(), value.clone()))
        });
        fields.collect::<Map<String, Json>>()
    };
    let mut args = fields_of(values);
    let mut fields = HitFields::new();
    for word in ["missing", "cut", "bytes"] {
        let found = fields_of(&format!("{details}{word}:"));
        if word == "missing" {
            args.extend(found.keys().map(|name| (name.clone(), Json::Null)));
        }
        if !found.is_empty() {
            fields.insert(word.to_owned(), Json::Object(found));
        }
    }
    fields.insert("args".to_owned(), Json::Object(args));
    fields.insert("time_ns".to_owned(), json!(time));
    for (name, own) in [("pid", &marker.pid), ("tid", &marker.tid)] {
        let other = data.get(&format!("end_{name}")).filter(|_| side == "end");
        let other = other.map(|other| match other {
            Json::String(digits) => json!(digits.parse::<i64>().expect("a number")),
            other => other.clone(),
        });
        fields.insert(name.to_owned(), other.unwrap_or_else(|| own.clone()));
    }
    for name in ["event", "cpu"] {
        if let Some(value) = data.get(&format!("{details}{name}")) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    fields
}

/// All hits of the profile in a file.
pub(super) fn read(path: &Path) -> Vec<HitFields> {
    hits(&markers(&Profile::read(path)))
}

/// All hits of a profile.
fn hits(markers: &[Marker]) -> Vec<HitFields> {
    let mut hits = Vec::new();
    for marker in markers
        .iter()
        .filter(|marker| marker.data["type"] != "losses")
    {
        hits.push(hit(marker, marker.begin, ""));
        hits.extend(marker.end.map(|end| hit(marker, end, "end")));
    }
    in_order(hits)
}

fn in_order(mut hits: Vec<HitFields>) -> Vec<HitFields> {
    hits.sort_by_key(|hit| (hit["time_ns"].as_u64(), hit["event"].to_string()));
    hits
}

fn expected(hits: Vec<HitFields>) -> Vec<HitFields> {
    let safe = hits.into_iter().map(|mut hit| {
        for value in hit.values_mut() {
            *value = float_safe(value);
        }
        hit.retain(|_, value| !value.is_null());
        hit
    });
    in_order(safe.collect())
}

#[test]
fn every_value_and_every_span_is_there() {
    let nasty = Nasty::record(200, &[]);
    let exported = nasty.export("firefox", &[]);
    let profile = Profile::read(&exported);
    let markers = markers(&profile);
    let (found, expected) = (hits(&markers), expected(nasty.hits()));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    for name in ["work", "job"] {
        let full = format!("nasty:{name}");
        let named: Vec<&Marker> = markers.iter().filter(|one| one.name == full).collect();
        let ended = named.iter().filter(|one| one.end.is_some());
        let own = |one: &&Marker| one.data["self_ns"].as_u64().expect("ns");
        let lonely = markers
            .iter()
            .filter(|one| one.data["span"] == "its begin is not known" && one.name.contains(name));
        let found = [
            ended.clone().count() as u64,
            (named.len() - ended.clone().count()) as u64,
            lonely.count() as u64,
            ended.map(own).sum(),
        ];
        assert_eq!(found, nasty.spans(name), "{name}");
        for one in named {
            let expected = match one.data.get("span").and_then(Json::as_str) {
                None => 1,
                Some("open") => 2,
                Some("unfinished") => 0,
                other => panic!("{other:?}"),
            };
            assert_eq!(one.phase, expected);
        }
    }
    let names: Vec<&Json> = profile.threads().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["nasty", "o\"th\\er\n\u{e9}"]);
    assert!(
        profile
            .threads()
            .iter()
            .all(|one| one["processName"] == "nasty")
    );

    // Compressed, and to standard output.
    let packed = [
        "export",
        "-i",
        "trace",
        "--to",
        "firefox",
        "-o",
        "p.json.gz",
    ];
    nasty.lab.usdtrec(packed).success().silent();
    let bytes = fs::read(nasty.lab.file("p.json.gz")).expect("a file");
    assert!(bytes.starts_with(&[0x1f, 0x8b]), "gzip");
    assert_eq!(
        Profile::read(&nasty.lab.file("p.json.gz")).json,
        profile.json
    );
}

#[test]
fn stacks_are_samples_and_causes() {
    let nasty = Nasty::record(20, &["-g"]);
    let profile = Profile::read(&nasty.export("firefox", &[]));
    let script = script_hits(&nasty.lab, "trace", &["time_ns", "tid", "stack"]);
    let mut found = Vec::new();
    let mut causes = BTreeMap::new();
    for thread in profile.threads() {
        let tid = thread["tid"].as_i64().expect("a number");
        let samples = &thread["samples"];
        for row in 0..samples["length"].as_u64().expect("a length") as usize {
            let mut stack = profile.stack(&samples["stack"][row]);
            stack.retain(|frame| !frame.starts_with("[cut"));
            found.push((profile.time(&samples["time"][row]), tid, stack));
        }
        for data in thread["markers"]["data"].as_array().expect("data") {
            if let Some(cause) = data.get("cause") {
                let mut stack = profile.stack(&cause["stack"]);
                stack.retain(|frame| !frame.starts_with("[cut"));
                causes.insert((profile.time(&cause["time"]), tid), stack);
            }
        }
    }
    found.sort();
    assert_eq!(found.len(), script.len());
    for ((time, tid, stack), hit) in found.iter().zip(&script) {
        assert_eq!(
            (json!(time), json!(tid)),
            (hit["time_ns"].clone(), hit["tid"].clone())
        );
        let frames = hit["stack"].as_array().expect("a stack");
        assert_eq!(frames.len(), stack.len(), "{stack:?}");
        for (expected, found) in frames.iter().zip(stack) {
            assert!(is_frame(expected, found), "{expected} {found}");
        }
    }
    for ((time, tid), stack) in causes {
        assert!(found.contains(&(time, tid, stack)));
    }
    let libs = profile.json["libs"].as_array().expect("libs");
    let program = libs
        .iter()
        .find(|one| one["name"] == "nasty")
        .expect("a library");
    let code = program["codeId"].as_str().expect("a build-id");
    let breakpad = program["breakpadId"].as_str().expect("an id");
    assert_eq!((code.len(), breakpad.len()), (40, 33));
    assert_eq!(code[16..32].to_uppercase(), breakpad[16..32]);
    assert_eq!(code[6..8].to_uppercase(), breakpad[0..2]);
}

#[test]
fn stored_traces_are_whole() {
    let lab = Lab::new();
    let export = ["export", "-i", DEMO, "--to", "firefox", "-o", "demo.json"];
    lab.usdtrec(export).success();
    let profile = Profile::read(&lab.file("demo.json"));
    let found = hits(&markers(&profile));
    let expected = expected(script_hits(&lab, DEMO, &KNOWN));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    for name in [
        "stock-6.1.data",
        "mixed.data",
        "tracepoint.data",
        "group-7.3.data",
    ] {
        let trace = format!("{}/testdata/traces/{name}", env!("CARGO_MANIFEST_DIR"));
        let export = [
            "export",
            "-i",
            &trace,
            "--to",
            "firefox",
            "-o",
            "stored.json",
        ];
        lab.usdtrec(export).success();
        let profile = Profile::read(&lab.file("stored.json"));
        let threads = profile.threads().iter();
        let markers = threads.map(|one| one["markers"]["length"].as_u64().expect("a length"));
        let hits = script_hits(&lab, &trace, &KNOWN).len() as u64;
        let markers: u64 = markers.sum();
        assert!(
            markers <= hits && markers >= hits / 2,
            "{name}: {markers} of {hits}"
        );
    }
}
