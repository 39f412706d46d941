//! Programs that ran one after the other with one pid.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Build, Engine, Event, Lab, need_tool, run, test};

/// Runs the program $1 with pid 20000 again and again, and writes the pid of each process: others may have that pid, then it is 20001.
const SCRIPT: &str = r#"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo 19999 > /proc/sys/kernel/ns_last_pid
    "$1" &
    echo $!
    wait
done"#;

/// Each process hits the probe with 1, then with 2.
fn number_of_processes(events: &[Event]) -> usize {
    let mut last: BTreeMap<u32, i128> = BTreeMap::new();
    let begins = events.iter().filter(|event| {
        let number = event.integer(1);
        let before = last.insert(event.tid, number);
        before.is_none_or(|before| number <= before)
    });
    begins.count()
}

/// `ns_last_pid` is the last pid of a pid namespace: the kernel gives the same one out again and again.
#[test]
fn each_process_is_counted() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("*:first@{path}");
    // Programs in the kernel know the host's pids only, which are not given out again.
    let engine = Engine::PerfTracefs;
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    let mut command = lab.at_home(
        Path::new("unshare"),
        ["--pid", "--fork", "--mount-proc", "--kill-child", usdtrec],
    );
    let script = ["sh", "-c", SCRIPT, "sh", path];
    command.args(engine.record("trace", &event, &script));
    let recorded = run(command).success();
    let lines = recorded.stdout.lines();
    let pids: Vec<u32> = lines.filter_map(|line| line.parse().ok()).collect();
    let mut times: BTreeMap<u32, usize> = BTreeMap::new();
    for pid in &pids {
        *times.entry(*pid).or_default() += 1;
    }
    assert!(times.values().any(|&times| times >= 5), "{pids:?}");

    let report = |options: &[&str]| {
        let options = ["report", "-i", "trace"].iter().chain(options);
        lab.usdtrec(options).success()
    };
    let answer: serde_json::Value =
        serde_json::from_str(&report(&["--format", "json"]).stdout).expect("JSON");
    let processes = &answer["probes"][0]["processes"][0];
    assert_eq!(processes["comm"], "first", "{answer}");
    let events = lab.events("trace");
    // The kernel's inherited events may miss hits of children.
    assert!(events.len() <= 2 * pids.len(), "{engine:?}: {pids:?}");
    assert_eq!(processes["count"], events.len(), "{engine:?}: {pids:?}");
    assert_eq!(
        processes["processes"],
        number_of_processes(&events),
        "{engine:?}: {pids:?}"
    );
    let several = times.values().filter(|&&times| times > 1).count();
    let said = match several {
        1 => "1 pid was used by several processes of one name".to_owned(),
        several => format!("{several} pids were used by several processes of one name"),
    };
    report(&["--sort", "pid"]).complains(&said);
    report(&["--sort", "comm"]).silent();
}
