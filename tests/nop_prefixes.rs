//! Probes on nops with prefixes: what the kernel plants is recorded, in running and in later processes; for all else the reason is said.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::{Build, Engine, Lab, Process, Recorder, run, test};

const PLANTED: [&str; 13] = [
    "n90",
    "n66_90",
    "n66_66_66_90",
    "pause",
    "repne",
    "fs",
    "gs",
    "rex",
    "rep_nop3",
    "nop10",
    "nop15",
    "endbr64",
    "lea",
];
/// Names of probes, and the prefixes that the kernel does not plant at.
const REFUSED: [(&str, &str); 5] = [
    ("cs", "0x2e"),
    ("ds", "0x3e"),
    ("es", "0x26"),
    ("ss", "0x36"),
    ("cs_nop10", "0x2e"),
];

/// The number of events of each probe.
fn counts(lab: &Lab) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in lab.events("trace") {
        *counts.entry(event.name().to_owned()).or_insert(0) += 1;
    }
    counts
}

fn all_planted(hits: usize) -> BTreeMap<String, usize> {
    PLANTED.map(|name| (name.to_owned(), hits)).into()
}

#[test]
fn what_the_kernel_plants_is_recorded_and_all_else_refused() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "prefixes.c", "prefixes");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("prefixes:*@{path}");
    for engine in Engine::ALL {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &[path, "7"]))
            .success();
        assert_eq!(counts(&lab), all_planted(7), "{engine:?}");
        for (name, prefix) in REFUSED {
            let said = recorded.stderr.lines();
            let mut of_probe = said.filter(|line| line.contains(&format!("sdt_prefixes:{name} ")));
            let line = of_probe.next().expect("a refusal");
            assert!(
                line.contains(&format!("has the prefix {prefix}, ")),
                "{line}"
            );
        }
    }
    // A process that runs already.
    let mut command = Command::new(&program);
    command.arg("5");
    let mut running = Process::spawn(command);
    assert_eq!(running.line().as_deref(), Some("ready"));
    let pid = running.pid().to_string();
    let recorder = Recorder::start(&lab, ["-p", &pid, "-o", "trace", "-e", &event]);
    running.say("");
    running.finish().success();
    recorder.finish().success();
    assert_eq!(counts(&lab), all_planted(5));
}

/// Registering a probe there succeeds as long as no process runs the program, and none gets a breakpoint: nothing forces it.
#[test]
fn a_prefix_that_the_kernel_refuses_is_not_forced() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "prefixes.c", "prefixes");
    let event = format!("prefixes:cs_nop10@{}", program.display());
    for options in [&[][..], &["--force"]] {
        let mut record = lab.command(["record", "-o", "trace", "-e", &event]);
        record.args(options).arg("--").arg(&program);
        let refused = run(record).exits(1).complains("has the prefix 0x2e");
        assert!(
            !refused.stderr.contains("is not a nop"),
            "{}",
            refused.stderr
        );
    }
}
