//! A stand-in for Node.js with its provider's eight probes (testdata/targets/node.c).

use std::process::Command;

use crate::common::{Build, Engine, Hit, Lab, Process, Recorder, judge, sites_of, test};

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
