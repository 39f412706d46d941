//! What `doctor` says of a host, and of probes.

use serde_json::Value;

use crate::common::{Lab, Ticker, test};

fn objects(json: &str) -> Vec<Value> {
    let lines = json.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Each thing has a state, and what does not work has an advice.
#[test]
fn what_recording_needs_is_said() {
    let lab = Lab::new();
    let json = lab.usdtrec(["doctor", "--format", "json"]).stdout;
    let found = objects(&json);
    let checks: Vec<&str> = found
        .iter()
        .filter_map(|one| one["check"].as_str())
        .collect();
    for check in ["kernel", "privileges", "lockdown", "tracefs"] {
        assert!(checks.contains(&check), "{json}");
    }
    for one in &found {
        let works = one["state"] == "ok";
        assert_eq!(one["advice"].is_null(), works, "{one}");
        assert!(one["found"].is_string(), "{one}");
    }
    let text = lab.usdtrec(["doctor"]).stdout;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    assert!(
        text.contains(&format!("Linux {}", release.trim())),
        "{text}"
    );
}

/// An engine that works here is tried and found to work, and hits cost what they may.
#[test]
fn engines_are_tried_on_probes_of_their_own() {
    let lab = Lab::privileged();
    let json = lab.usdtrec(["doctor", "--try", "--format", "json"]).stdout;
    let found = objects(&json);
    let works = |name: &str| {
        let mut of_name = found.iter().filter(|one| one["check"] == name);
        of_name.any(|one| one["state"] == "ok")
    };
    let engines = [
        "bpf, uprobe_multi",
        "bpf, uprobe PMU",
        "perf, tracefs",
        "perf, uprobe PMU",
    ];
    assert!(engines.into_iter().any(works), "{json}");
    let hit = found.iter().find(|one| one["check"] == "a hit");
    let hit = hit.and_then(|hit| hit["found"].as_str()).expect("a cost");
    let ns: u64 = hit
        .strip_suffix(" ns")
        .and_then(|ns| ns.parse().ok())
        .expect("ns");
    assert!((50..1_000_000).contains(&ns), "{json}");
    let left: Vec<_> = std::fs::read_dir(lab.path()).expect("the lab").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Who maps a file, and that it was replaced since.
#[test]
fn probes_of_processes_files_and_patterns_are_explained() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let path = ticker.program().to_str().expect("a path");
    let pid = ticker.pid().to_string();
    let maps = format!("process {pid} maps it");
    for what in [&*pid, path, &format!("sdt_ticker:tick@{path}")] {
        let said = lab.usdtrec(["doctor", "-p", what]).success().stdout;
        assert!(said.contains(&maps), "{what}: {said}");
        assert!(said.contains("sdt_ticker:tick"), "{what}: {said}");
    }
    let guarded = lab.usdtrec(["doctor", "-p", &pid]).success().stdout;
    let line = guarded
        .lines()
        .find(|line| line.contains("sdt_ticker:guarded"));
    assert!(
        line.is_some_and(|line| line.contains("guarded by a semaphore")),
        "{guarded}"
    );
    std::fs::remove_file(ticker.program()).expect("the program");
    let said = lab.usdtrec(["doctor", "-p", &pid]).success().stdout;
    assert!(
        said.contains("it was deleted or replaced since then"),
        "{said}"
    );
    let none = lab
        .usdtrec(["doctor", "-p", "sdt_nobody:has_it"])
        .exits(1)
        .stdout;
    assert!(
        none.contains("no running file has such a probe; start the program"),
        "{none}"
    );
}
