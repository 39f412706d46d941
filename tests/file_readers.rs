//! The kernel plants breakpoints in each private mapping of a file, also of programs that only read it: these are named, and a file that nobody
//! executes has none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Lab, Recorder, copy_program, need_tool, run, test, within};
use crate::no_gap::early;
use crate::other_processes::kernel_holds;

/// Maps a file privately to read it, and prints whether it is the same as read(2) reads.
const READ: &str = "import mmap, sys
file = open(sys.argv[1], 'rb')
mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)[:]
print('same' if mapped == file.read() else 'different')";

/// Each run of testdata/targets/early.c has so many hits.
const HITS: usize = 2;

/// Whether a private mapping of a file is what is in the file.
fn reads_as_it_is(file: &Path) -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", READ]).arg(file);
    run(command).success().stdout.trim() == "same"
}

fn execute(program: &Path, times: usize) {
    for _ in 0..times {
        run(Command::new(program)).success();
    }
}

fn program(lab: &Lab, provider: &'static str) -> PathBuf {
    need_tool("python3");
    early(lab, &["-O1", provider], "early")
}

/// A file that was named keeps its probes. Programs that execute it are not named, and miss nothing.
#[test]
fn a_reader_of_a_named_file_is_named_once() {
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=read_named");
    let pattern = format!("read_named:*@{}", program.display());
    let recorder = Recorder::start(&lab, ["-a", "-e", &pattern, "-o", "trace"]);
    assert!(!reads_as_it_is(&program));
    execute(&program, 3);
    assert!(!reads_as_it_is(&program));
    let ended = recorder.stop().success();
    let line = format!(
        ") reads {} while it has breakpoints: what it writes from it may be broken; ",
        program.display()
    );
    assert_eq!(ended.stderr.matches(&line).count(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("usdtrec: python3"),
        "{}",
        ended.stderr
    );
    assert_eq!(lab.events("trace").len(), 3 * HITS);
    let report = lab.usdtrec(["report", "-i", "trace"]).success();
    assert!(report.stderr.contains(&line), "{}", report.stderr);
    let json = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.success().stdout).expect("JSON");
    let mut shortfalls = json["shortfalls"].as_array().expect("shortfalls").iter();
    assert!(shortfalls.any(|one| one["kind"] == "reader"), "{json}");
    assert!(reads_as_it_is(&program), "nothing is left");
}

/// A file that was found has no probes while nobody executes it, and all hits of those who execute it again, or their gap.
#[test]
fn a_file_that_nobody_executes_reads_as_it_is() {
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=read_found");
    let recorder = Recorder::start(&lab, ["-a", "-e", "read_found:*", "-o", "trace"]);
    let mut unplanted = 0;
    let is_planted = || {
        execute(&program, 1);
        unplanted += 1;
        !reads_as_it_is(&program)
    };
    assert!(within(Duration::from_secs(30), is_planted));
    // As long as it is executed, it keeps its probes.
    let begun = Instant::now();
    let mut runs = 0;
    while begun.elapsed() < Duration::from_secs(12) {
        execute(&program, 1);
        runs += 1;
    }
    let is_idle = || reads_as_it_is(&program);
    assert!(within(Duration::from_secs(120), is_idle));
    execute(&program, 5);
    assert!(!reads_as_it_is(&program), "it is planted again");
    execute(&program, 5);
    let ended = recorder.stop().success();
    let hits = lab.events("trace").len();
    assert!(
        ended.stderr.contains("followed: 1 file"),
        "{}",
        ended.stderr
    );
    if kernel_holds() && !ended.stderr.contains("no process had executed the file") {
        assert!(
            hits >= (runs + 10) * HITS,
            "{hits} of {runs} runs: {}",
            ended.stderr
        );
    } else {
        assert!(
            ended
                .stderr
                .contains("no process had executed the file for 10"),
            "{}",
            ended.stderr
        );
    }
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report.success().stdout).expect("JSON");
    let probes = report["probes"].as_array().expect("probes");
    let mut names: Vec<&str> = probes
        .iter()
        .filter_map(|probe| probe["event"].as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(
        names.len(),
        probes.len(),
        "no event is added again: {report}"
    );
}

/// Of many files, those that nobody maps any more are released. One that is executed again is found again: who executes it is not held, and who reads it is
/// named.
#[test]
fn a_released_file_that_is_executed_again_is_another_one() {
    /// From this number on files are released.
    const FILES: usize = 64;
    /// Longer than two looks at who maps files, and than it takes until nobody is known to execute one.
    const RELEASED_AFTER: Duration = Duration::from_secs(40);
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=read_released");
    let copy = |number| {
        let copy = lab.file(&format!("copy{number}"));
        copy_program(&program, &copy);
        copy
    };
    let copies: Vec<PathBuf> = (0..FILES).map(copy).collect();
    let recorder = Recorder::start(&lab, ["-a", "-e", "read_released:*", "-o", "trace"]);
    let is_planted = |copy: &Path| {
        execute(copy, 1);
        !reads_as_it_is(copy)
    };
    let [again, others @ ..] = &copies[..] else {
        panic!("there are files");
    };
    // Its reader is to be named later, of whom there are not very many.
    execute(again, 1);
    for copy in others {
        execute(copy, 1);
    }
    let last = others.last().expect("one");
    assert!(within(Duration::from_secs(60), || is_planted(last)));
    thread::sleep(RELEASED_AFTER);
    assert!(within(Duration::from_secs(30), || is_planted(again)));
    let begun = Instant::now();
    execute(again, 5);
    // A thread that is held for nothing is held for two seconds.
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(!reads_as_it_is(again));
    let ended = recorder.stop().success();
    ended
        .complains(&format!("followed: {} files", FILES + 1))
        .complains(&format!(
            ") reads {} while it has breakpoints",
            again.display()
        ));
}
