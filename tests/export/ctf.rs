//! `--to ctf`.

use std::fs::{self, File};
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::trace::{BlockReader, Compression, Trace, TraceWriter};

use super::nasty::{HitFields, Nasty, is_frame, script_hits};
use crate::common::{Lab, babeltrace, babeltrace_script, test};

/// Members of a hit that are compared.
const MEMBERS: [&str; 12] = [
    "time_ns", "cpu", "pid", "tid", "comm", "event", "args", "missing", "cut", "bytes", "numbers",
    "stack",
];

/// What babeltrace2 reads.
pub(super) struct Read {
    pub(super) hits: Vec<Json>,
    pub(super) lost: u64,
    environment: Json,
}

/// Exports a trace, and reads it with babeltrace2.
pub(super) fn read(lab: &Lab, input: &str, output: &str) -> Read {
    let export = ["export", "-i", input, "--to", "ctf", "-o", output];
    let exported = lab.usdtrec(export).success();
    let read = read_folder(lab, output);
    match read.lost {
        0 => exported.silent(),
        lost => exported.complains(&format!("{lost} events were lost while recording")),
    };
    read
}

/// Reads a folder with babeltrace2.
pub(super) fn read_folder(lab: &Lab, output: &str) -> Read {
    let shown = babeltrace(lab, &[], output);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/ctf_events.py");
    let events = babeltrace_script(lab, &[script, output]);
    let mut read = Read {
        hits: Vec::new(),
        lost: 0,
        environment: Json::Null,
    };
    for mut line in events.stdout.lines().map(json_line) {
        if let Some(lost) = line["lost"].as_u64() {
            read.lost += lost;
        } else if line["environment"].is_object() {
            read.environment = line["environment"].take();
        } else {
            read.hits.push(line);
        }
    }
    assert_eq!(shown.stdout.lines().count(), read.hits.len());
    read
}

fn json_line(line: &str) -> Json {
    serde_json::from_str(line).expect("JSON")
}

/// Whether a field has the value that JSON has. The format has no booleans.
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
    let lab = &nasty.lab;
    let report = ["report", "-i", "trace", "--format", "json"];
    let report = json_line(&lab.usdtrec(report).success().stdout);
    let found = read(lab, "trace", "ctf");
    assert_eq!(found.environment["hostname"], report["host"]);
    assert_eq!(found.environment["lost_events"], "0");
    compare_all(lab, "trace", found);
    let again = lab.usdtrec(["export", "-i", "trace", "--to", "ctf", "-o", "ctf"]);
    again.exits(1).complains("ctf");
    let metadata = fs::read_to_string(lab.file("ctf/metadata")).expect("a file");
    assert!(metadata.starts_with("/* CTF 1.8 */"), "{metadata}");
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
        let found = read(&lab, &trace, &name.replace('/', "-"));
        compare_all(&lab, &trace, found);
    }
}

/// Names of arguments that no program of this project makes, and others that the format uses itself.
const NAMES: [&str; 6] = [
    "a.b",
    "a.b",
    "\u{1f389} \"{};\u{1b}\u{e0041}",
    "_id",
    "struct",
    "",
];

/// Writes a trace again with other names of arguments; the first one is a boolean.
fn rename(from: &Path, to: &Path) {
    let trace = Trace::open(from).expect("a trace");
    let mut info = trace.info().clone();
    let definitions = info.definitions.as_mut().expect("definitions");
    for probe in &mut definitions.probes {
        probe.arguments = NAMES.map(Argument::named).into();
        probe.arguments[0].kind = Some(ArgumentType::Bool);
    }
    let file = File::create(to).expect("a file");
    let mut writer = TraceWriter::create(file, &info, Compression::None).expect("a head");
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        writer.push(reader.read(&trace, block).expect("a block"));
        writer.flush().expect("a round");
    }
    writer.finish(&[]).expect("an end");
}

#[test]
fn names_of_fields_differ() {
    let lab = Lab::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    rename(Path::new(demo), &lab.file("trace"));
    let event = "sdt_usdtrec:request__done";
    let expected = script_hits(&lab, demo, &["event", "args"]);
    let expected: Vec<&Json> = expected
        .iter()
        .filter(|hit| hit["event"] == event)
        .map(|hit| &hit["args"])
        .collect();
    let names = ["a_b", "a_b_2", "________", "_id", "struct", ""];
    let found = read(&lab, "trace", "ctf");
    let found = found.hits.iter().filter(|hit| hit["event"] == event);
    let found: Vec<&Json> = found.map(|hit| &hit["fields"]).collect();
    assert!(found.len() > 1000);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        for (index, name) in names.iter().enumerate() {
            let expected = &expected[format!("arg{}", index + 1)];
            let expected = match index {
                0 => json!(expected.as_u64() != Some(0)),
                _ => expected.clone(),
            };
            assert!(same(&expected, &found[name]), "{name}: {found}");
        }
    }
}

#[test]
fn a_folder_has_its_name_when_it_is_complete() {
    let lab = Lab::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    let export =
        |more: &[&str]| lab.usdtrec([&["export", "-i", demo, "--to", "ctf"], more].concat());
    let refused = |more: &[&str], word: &str| {
        export(more).exits(2).complains(word).complains("ctf");
    };
    refused(&["-o", "-"], "folder");
    refused(&["-o", "out", "--span", "*"], "--span");
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
