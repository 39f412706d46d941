//! `--to perf`: stock perf prints the same of the plain file as of the trace, no record in the file is ours, and we read of it what the trace has.

use std::fs;
use std::path::{Path, PathBuf};

use super::nasty::Nasty;
use crate::common::{Lab, Perf, test};

/// A trace that is stored with the tests.
fn stored(name: &str) -> String {
    format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Exports a trace to `plain`.
#[track_caller]
fn export(lab: &Lab, trace: &str, options: &[&str]) -> PathBuf {
    let head = ["export", "-i", trace, "--to", "perf", "-o", "plain"];
    lab.usdtrec([&head, options].concat()).success();
    lab.file("plain")
}

/// What stock perf prints, without lines about the file itself.
#[track_caller]
fn printed(perf: &Perf<'_>, verb: &[&str], file: &str) -> String {
    let printed = perf.run([verb, &["-i", file]].concat()).success().stdout;
    let lines = printed.lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Stock perf prints the same of both files, which is not nothing.
#[track_caller]
fn same(perf: &Perf<'_>, trace: &str, verbs: &[&[&str]]) {
    for verb in verbs {
        let [of_trace, of_plain] = [trace, "plain"].map(|file| printed(perf, verb, file));
        assert!(of_trace.lines().count() > 5, "{trace} {verb:?}: {of_trace}");
        let differing = of_trace.lines().zip(of_plain.lines());
        let differing = differing.into_iter().find(|(theirs, ours)| theirs != ours);
        assert_eq!(differing, None, "{trace} {verb:?}");
        assert_eq!(of_trace.len(), of_plain.len(), "{trace} {verb:?}");
    }
}

const SCRIPT: &[&str] = &[
    "script",
    "--show-task-events",
    "--show-lost-events",
    "--no-inline",
];
const REPORT: &[&str] = &["report", "--stdio", "--no-inline", "--sort", "comm,pid,sym"];

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

/// The types of the records, after a check that all is as stock perf writes it without `-z`.
#[track_caller]
fn kinds(path: &Path) -> Vec<u32> {
    let bytes = fs::read(path).expect("a file");
    let (from, size) = (number(&bytes, 40) as usize, number(&bytes, 48) as usize);
    let known = 0xffff_fffe & !(1 << 24 | 1 << 27);
    assert_eq!(number(&bytes, 72) & !known, 0, "features");
    assert_eq!(bytes[80..104], [0; 24], "features");
    let mut at = from;
    let mut kinds = Vec::new();
    let mut last = 0;
    while at < from + size {
        let header = number(&bytes, at);
        kinds.push(header as u32);
        at += (header >> 48) as usize;
        last = last.max(at);
    }
    assert_eq!(at, from + size, "the end of the last record");
    let features = number(&bytes, 72).count_ones() as usize;
    let bodies = from + size + 16 * features;
    for feature in 0..features {
        let entry = from + size + 16 * feature;
        let (offset, size) = (number(&bytes, entry), number(&bytes, entry + 8));
        assert!(offset as usize >= bodies, "a section before the table");
        assert!((offset + size) as usize <= bytes.len(), "a section");
    }
    let is_plain = |kind: &&u32| **kind >= 64 && **kind != 68;
    assert_eq!(kinds.iter().find(is_plain), None, "a record of perf's own");
    kinds
}

#[test]
fn stock_perf_prints_the_same_of_stored_traces() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    for name in [
        "demo.data",
        "traces/stock-6.1.data",
        "traces/stock-6.1-z.data",
        "traces/stock-6.1-pipe.data",
        "traces/tracepoint.data",
        "traces/tracepoint-regs.data",
        "traces/mixed.data",
        "traces/chunks.data",
        "traces/chunks-killed.data",
    ] {
        let trace = stored(name);
        let plain = export(&lab, &trace, &[]);
        assert!(kinds(&plain).contains(&9), "{name}: no sample");
        same(&perf, &trace, &[SCRIPT, REPORT]);
    }
}

#[test]
fn traces_of_a_later_perf_have_the_same_events() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    for name in [
        "stock-7.2.data",
        "stock-7.2-z.data",
        "stock-7.2-regs-stack.data",
    ] {
        let trace = stored(&format!("traces/{name}"));
        kinds(&export(&lab, &trace, &[]));
        let [of_trace, of_plain] = [&*trace, "plain"].map(|file| {
            let script = lab.usdtrec(["script", "-i", file, "--format", "json"]);
            script.success().stdout
        });
        assert_eq!(of_trace, of_plain, "{name}");
        // perf 6.1 does not open the trace itself.
        let printed = printed(&perf, &["script", "-F", "time"], "plain");
        assert_eq!(printed.lines().count(), of_trace.lines().count(), "{name}");
    }
}

#[test]
fn stock_perf_prints_the_same_of_a_recording_with_stacks() {
    let nasty = Nasty::record(200, &["-g"]);
    let perf = Perf::new(&nasty.lab);
    let plain = export(&nasty.lab, "trace", &[]);
    let kinds = kinds(&plain);
    for kind in [3, 9, 10] {
        assert!(kinds.contains(&kind), "no record of type {kind}");
    }
    let chains = &["report", "--stdio", "--no-inline", "-g", "caller"];
    same(&perf, "trace", &[SCRIPT, REPORT, chains]);
    let stdout = ["export", "-i", "trace", "--to", "perf", "-o", "-"];
    let line = format!(
        "{} {} > piped",
        env!("CARGO_BIN_EXE_usdtrec"),
        stdout.join(" ")
    );
    let piped = nasty.lab.at_home(Path::new("sh"), ["-c", &line]);
    crate::common::run(piped).success();
    let [piped, plain] = [nasty.lab.file("piped"), plain].map(|file| fs::read(file).expect("it"));
    assert!(piped == plain, "the same on standard output");
}

/// Names, types, strings, floats and sites are in the definitions.
#[test]
fn it_reads_as_the_trace_itself() {
    let nasty = Nasty::record(50, &["-g"]);
    let same = |lab: &Lab, trace: &str| {
        export(lab, trace, &[]);
        for question in [
            &["script", "--format", "json", "-F", "+span"][..],
            &["script", "--format", "csv"],
            &["script"],
            &["report", "--span", "*", "--format", "json"],
            &["report", "--sort", "event,tid", "--format", "csv"],
        ] {
            let answer_from = |file: &str| {
                let answer = lab.usdtrec([question, &["-i", file]].concat());
                answer.success().stdout
            };
            let [of_trace, of_plain] = [trace, "plain"].map(answer_from);
            let lines = |text: &str| -> Vec<String> {
                // A block is elsewhere in the file.
                let lines = text.lines().map(|line| {
                    let parts = line.split(",\"offset\":");
                    let parts =
                        parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
                    parts.collect::<String>()
                });
                lines.filter(|line| !line.starts_with("# ")).collect()
            };
            assert!(of_trace.len() > 100, "{question:?}: {of_trace}");
            assert_eq!(lines(&of_plain), lines(&of_trace), "{trace} {question:?}");
        }
    };
    same(&nasty.lab, "trace");
    same(&Lab::new(), &stored("demo.data"));
}

#[test]
fn a_selection_has_what_script_prints_of_it() {
    let nasty = Nasty::record(200, &[]);
    let perf = Perf::new(&nasty.lab);
    for selection in [
        &["-e", "sdt_nasty:work__*"][..],
        &["--time", "0%-50%"],
        &["--filter", "key > 3", "-e", "sdt_nasty:work__start"],
        &["--pid", "1"],
    ] {
        export(&nasty.lab, "trace", selection);
        let times = |text: &str, seconds: fn(&str) -> Option<&str>| -> Vec<String> {
            let times = text.lines().filter_map(seconds);
            times.map(str::to_owned).collect()
        };
        let script = ["script", "-i", "trace", "-F", "time", "--ns"];
        let ours = nasty.lab.usdtrec([&script, selection].concat()).success();
        let ours = times(&ours.stdout, |line| line.trim().strip_suffix(':'));
        let theirs = perf.run(["script", "-i", "plain", "-F", "time", "--ns"]);
        let theirs = times(&theirs.success().stdout, |line| {
            line.trim().strip_suffix(':')
        });
        assert_eq!(ours, theirs, "{selection:?}");
        assert_eq!(ours.is_empty(), selection[0] == "--pid", "{selection:?}");
    }
}

#[test]
fn what_has_no_effect_is_refused() {
    let lab = Lab::new();
    let demo = stored("demo.data");
    let export = ["export", "-i", &demo, "--to", "perf", "-o", "plain"];
    for option in [
        &["--span", "query"][..],
        &["--span", "query", "--key", "pid"],
        &["--trace-id", "id"],
        &["--no-inline"],
    ] {
        let refused = lab.usdtrec([&export, option].concat());
        refused.exits(2).complains(option[0]);
    }
    let packed = ["export", "-i", &demo, "--to", "perf", "-o", "plain.gz"];
    lab.usdtrec(packed).exits(2).complains(".gz");
}
