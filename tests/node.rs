//! A stand-in for Node.js with its provider's eight probes (testdata/targets/node.c), and functions of JavaScript in stacks of Node.js itself.

use std::fs;
use std::process::Command;

use crate::callers::folded_lines;
use crate::common::{
    Build, Engine, Hit, Lab, Process, Recorder, judge, need_tool, run, sites_of, test,
};

pub(crate) const NODE: Build = Build {
    compiler: "gcc",
    options: &["-O0"],
};

/// Tells node what to do; its answer.
pub(crate) fn tell(node: &mut Process, command: &str) -> String {
    node.say(command);
    let mut answer = String::new();
    while let Some(line) = node.line().filter(|line| line != "done") {
        answer += &line;
        answer.push('\n');
    }
    answer
}

/// Index, record system-wide while node runs idle, then it works: the way of the first page of the README.
#[test]
fn gc_start_system_wide() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    lab.usdtrec(["buildid-cache", "--add", program.to_str().expect("a path")])
        .success();
    let recorder = Recorder::start(&lab, ["--strings=off", "-e", "sdt_node:gc__start", "-a"]);
    let printed = tell(&mut node, "gc 25");
    assert_eq!(
        tell(&mut node, "semaphores"),
        "semaphores 1 0 0 0 0 0 0 0\n"
    );
    recorder.stop();
    assert_eq!(
        tell(&mut node, "semaphores"),
        "semaphores 0 0 0 0 0 0 0 0\n"
    );
    let mut hits = Hit::parse_lines(&printed);
    hits.retain(|hit| hit.name == "gc__start");
    assert_eq!(hits.len(), 25);
    let events = lab.events("usdtrec.data");
    assert!(
        events
            .iter()
            .all(|event| event.comm == "node" && event.pid == node.pid())
    );
    judge(
        &hits,
        &events,
        &sites_of(&lab, &program),
        (NODE, Engine::BpfMulti),
    );
}

/// All eight probes, their arguments more than 4 KiB up the stack.
#[test]
fn all_probes() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    let event = format!("node:*@{}", program.display());
    let pid = node.pid().to_string();
    let recorder = Recorder::start(
        &lab,
        ["--strings=off", "-o", "trace", "-e", &event, "-p", &pid],
    );
    let printed = tell(&mut node, "gc 3") + &tell(&mut node, "request 20");
    recorder.stop();
    let hits = Hit::parse_lines(&printed);
    assert_eq!(hits.len(), 6 + 20 * 6);
    judge(
        &hits,
        &lab.events("trace"),
        &sites_of(&lab, &program),
        (NODE, Engine::BpfMulti),
    );
}

/// Calls a function of the C library 300 times.
const SCRIPT: &str = r#"
function innerLeaf() { return process.umask(0o22); }
function middleFn(n) { for (let i = 0; i < n; i++) innerLeaf(); }
function outerFn() { for (let i = 0; i < 30; i++) middleFn(10); }
console.log(process.pid);
outerFn();
"#;

/// A library whose function of that name has a probe.
const UMASK: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-shared", "-fPIC"],
};

/// Functions that V8 interprets, those that it compiles and its built-in ones, which have no unwind information, are between functions that have some.
#[test]
fn functions_of_javascript_have_names() {
    const NODE: &str = "/usr/bin/node";
    let lab = Lab::privileged();
    need_tool(NODE);
    fs::write(lab.file("script.js"), SCRIPT).expect("a file");
    let library = UMASK.make(&lab, "umask.c", "libumask.so");
    let event = format!("umask:called@{}", library.display());
    for names in ["--perf-basic-prof", "--perf-prof"] {
        let mut record = lab.command(["record", "--call-graph", "dwarf,16K", "-m", "32M"]);
        record.args(["-o", "trace", "-e", &event, "--", "env"]);
        record.arg(format!("LD_PRELOAD={}", library.display()));
        record.args([NODE, names, "--interpreted-frames-native-stack"]);
        // No function is compiled into its caller.
        record.args(["--no-opt", "script.js"]);
        let said = run(record).success().stdout;
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", said.trim()));
        let folded = folded_lines(&lab, &[]);
        assert_eq!(folded.values().sum::<u64>(), 300, "{folded:#?}");
        for stack in folded.keys() {
            let mut frames = stack.split(';');
            let expected = [
                "__libc_start_main",
                "outerFn ",
                "middleFn ",
                "innerLeaf ",
                "umask",
            ];
            for name in expected {
                assert!(
                    frames.any(|frame| frame.contains(name)),
                    "{names}: no {name} in {stack}"
                );
            }
            assert!(!stack.contains("[cut"), "{stack}");
        }
    }
}
