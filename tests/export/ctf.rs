//! `--to ctf`.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::nasty::{HitFields, Nasty, is_frame, script_hits};
use crate::common::{Lab, need_tool, run, test};

/// Members of a hit that are compared.
const MEMBERS: [&str; 12] = [
    "time_ns", "cpu", "pid", "tid", "comm", "event", "args", "missing", "cut", "bytes", "numbers",
    "stack",
];

/// What babeltrace2 reads.
pub(super) struct Read {
    pub(super) hits: Vec<Json>,
    pub(super) lost: u64,
}

/// Exports a trace, and reads it with babeltrace2.
pub(super) fn read(lab: &Lab, input: &str, output: &str) -> Read {
    need_tool("babeltrace2");
    let export = ["export", "-i", input, "--to", "ctf", "-o", output];
    let exported = lab.usdtrec(export).success();
    let shown = run(lab.at_home(Path::new("babeltrace2"), [output])).success();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/ctf_events.py");
    // Debian's, which has its module.
    let events = run(lab.at_home(Path::new("/usr/bin/python3"), [script, output])).success();
    let mut read = Read {
        hits: Vec::new(),
        lost: 0,
    };
    for line in events.stdout.lines() {
        let line: Json = serde_json::from_str(line).expect("JSON");
        match line["lost"].as_u64() {
            Some(lost) => read.lost += lost,
            None => read.hits.push(line),
        }
    }
    assert_eq!(shown.stdout.lines().count(), read.hits.len());
    match read.lost {
        0 => exported.silent(),
        lost => exported.complains(&format!("{lost} events were lost while recording")),
    };
    read
}

/// Whether a field has the value that JSON has.
fn same(expected: &Json, found: &Json) -> bool {
    match (expected, &found["float"]) {
        (Json::Bool(expected), _) => *found == json!(u8::from(*expected)),
        (expected, Json::Null) => expected == found,
        (Json::Number(expected), Json::Number(float)) => {
            let (expected, float) = (expected.as_f64(), float.as_f64());
            // JSON has the shortest digits of a float of 4 bytes.
            let short = |number: Option<f64>| number.map(|number| number as f32);
            expected == float || short(expected) == short(float)
        }
        (expected, float) => expected == float,
    }
}

/// Compares a hit with what `script` prints of it.
fn compare(expected: &HitFields, found: &Json) {
    for name in ["time_ns", "cpu", "pid", "tid", "event"] {
        let expected = expected.get(name).unwrap_or(&Json::Null);
        assert_eq!(*expected, found[name], "{name}: {found}");
    }
    let comm = expected["comm"].as_str().unwrap_or_default();
    assert_eq!(comm, found["comm"]);
    let mut fields: Map<String, Json> = found["fields"].as_object().expect("fields").clone();
    let none = Json::Object(Map::new());
    for (member, suffix) in [
        ("args", ""),
        ("missing", "_missing"),
        ("cut", "_cut"),
        ("bytes", "_bytes"),
        ("numbers", "_number"),
    ] {
        let members = expected.get(member).unwrap_or(&none);
        for (name, expected) in members.as_object().expect("an object") {
            if member == "args" && expected.is_null() {
                continue;
            }
            let field = fields.remove(&format!("{name}{suffix}"));
            let field = field.unwrap_or_else(|| panic!("{name}{suffix}: {found}"));
            assert!(same(expected, &field), "{name}{suffix}: {expected} {found}");
        }
    }
    if let Some(stack) = fields.remove("stack") {
        let expected = expected.get("stack").and_then(Json::as_array);
        let frames = stack.as_array().expect("a sequence").iter();
        let frames: Vec<&Json> = frames
            .filter(|frame| !frame.as_str().expect("a text").starts_with("[cut"))
            .collect();
        assert_eq!(frames.len(), expected.map_or(0, Vec::len));
        for (frame, expected) in frames.iter().zip(expected.into_iter().flatten()) {
            assert!(
                is_frame(expected, frame.as_str().expect("a text")),
                "{found}"
            );
        }
        fields.remove("stack_length");
    }
    assert!(fields.is_empty(), "{fields:?}");
}

pub(super) fn compare_all(lab: &Lab, input: &str, read: Read) {
    let mut expected = script_hits(lab, input, &MEMBERS);
    let mut found = read.hits;
    expected.sort_by_key(|hit| (hit["time_ns"].as_u64(), hit["tid"].to_string()));
    found.sort_by_key(|hit| (hit["time_ns"].as_u64(), hit["tid"].to_string()));
    assert_eq!(found.len(), expected.len());
    for (expected, found) in expected.iter().zip(&found) {
        compare(expected, found);
    }
}

#[test]
fn babeltrace_reads_every_value() {
    let nasty = Nasty::record(200, &["-g"]);
    let found = read(&nasty.lab, "trace", "ctf");
    compare_all(&nasty.lab, "trace", found);
    let again = nasty
        .lab
        .usdtrec(["export", "-i", "trace", "--to", "ctf", "-o", "ctf"]);
    again.exits(1).complains("ctf");
    let metadata = fs::read_to_string(nasty.lab.file("ctf/metadata")).expect("a file");
    assert!(metadata.starts_with("/* CTF 1.8 */"));
}

#[test]
fn stored_traces_are_whole() {
    let lab = Lab::new();
    for name in [
        "demo.data",
        "traces/stock-6.1.data",
        "traces/stock-7.2-regs-stack.data",
        "traces/mixed.data",
        "traces/tracepoint.data",
        "traces/group-7.3.data",
    ] {
        let trace = format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"));
        let output = name.replace('/', "-");
        let found = read(&lab, &trace, &output);
        compare_all(&lab, &trace, found);
    }
}

#[test]
fn a_folder_has_its_name_when_it_is_complete() {
    let lab = Lab::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    let export =
        |more: &[&str]| lab.usdtrec([&["export", "-i", demo, "--to", "ctf"], more].concat());
    export(&["-o", "-"]).exits(2).complains("folder");
    export(&["-o", "out", "--span", "*"])
        .exits(2)
        .complains("--span");
    export(&["-o", "out", "-e", "nothing:at_all"]).exits(1);
    fs::create_dir(lab.file("empty")).expect("a folder");
    export(&["-o", "empty"]).success().silent();
    assert!(lab.file("empty/metadata").exists());
    fs::write(lab.file("file"), "kept").expect("a file");
    export(&["-o", "file"]).exits(1).complains("file");
    assert_eq!(fs::read(lab.file("file")).expect("the file"), b"kept");
    let files = fs::read_dir(lab.path()).expect("a directory");
    let mut names: Vec<String> = files
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.contains("usdtrec") || name == "out")
        .collect();
    names.sort();
    assert_eq!(names, [""; 0]);
}
