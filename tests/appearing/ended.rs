//! Programs that end before their file is read.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{OwnHits, PLANTED, Recorded, need_tools, program};
use crate::common::{Lab, Process, test, wait_until};

/// A recorder of what a shell starts in a mount namespace of its own, where a program is of which this host has no path. The recorder is stopped
/// while the program runs.
struct Stopped {
    lab: Lab,
    recorder: Process,
    shell: Process,
}

impl Stopped {
    /// `script` runs once the shell has read a line; `$PROGRAM` is the program.
    fn start(provider: &'static str, event: &str, script: &str) -> Self {
        let lab = Lab::privileged();
        need_tools();
        let program = program(&lab, provider);
        fs::create_dir(lab.file("dir")).expect("a folder");
        let script = format!(
            "mount -t tmpfs none dir && cp {} dir/program && PROGRAM=dir/program && read line; {script}",
            program.display()
        );
        // On one CPU, whose records are read in their order: of those of two, a later program's may come first.
        let unshare = ["--cpu-list", "0", "unshare", "--mount", "sh", "-c", &script];
        let shell = lab.at_home(Path::new("taskset"), unshare);
        let shell = Process::spawn(shell);
        let pid = shell.pid().to_string();
        wait_until("the program's copy", || {
            let root = format!("/proc/{pid}/cwd/dir/program");
            fs::metadata(root)
                .is_ok_and(|copy| copy.len() == fs::metadata(&program).expect("it").len())
        });
        let mut recorder =
            Process::spawn(lab.command(["record", "-o", "trace", "-e", event, "-p", &pid]));
        recorder.until_error_line("[ usdtrec record: 0 probes");
        recorder.signal("STOP");
        Self {
            lab,
            recorder,
            shell,
        }
    }

    /// What the next program printed, which is one hit.
    #[track_caller]
    fn own_hit(&mut self) -> OwnHits {
        let line = self.shell.line().expect("what it did");
        let own = OwnHits::parse(&line);
        assert_eq!(own.times.len(), 1);
        own
    }
}

#[test]
fn programs_that_ended_before_their_file_was_read_are_counted() {
    let mut stopped = Stopped::start(
        "-DPROVIDER=appearing_ended",
        "appearing_ended:hit",
        "$PROGRAM 0 1; $PROGRAM 1 1; exit",
    );
    stopped.shell.say("");
    for _ in 0..2 {
        stopped.own_hit();
    }
    let Stopped {
        lab,
        recorder,
        shell,
    } = stopped;
    shell.finish().success();
    recorder.signal("CONT");
    let said = recorder.finish().success();
    let line = "2 programs ended before their file was read; hits of their probes, if they have selected ones, are not recorded";
    let said = said.complains(line).complains(" 0 events, 0 lost").stderr;
    assert_eq!(said.matches("before their file was read").count(), 1);
    let report = lab.usdtrec(["report", "-i", "trace"]).success();
    report.complains(line);
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.success().stdout).expect("an object");
    let shortfalls = report["shortfalls"].as_array().expect("a list");
    let of_kind = |kind: &str| shortfalls.iter().find(|one| one["kind"] == kind);
    assert_eq!(of_kind("not_read").expect("one")["processes"], 2);
    assert!(of_kind("no_probe").is_some(), "{shortfalls:?}");
    // Nor are those of probes that the children had from the start.
    assert!(of_kind("unattached_children").is_some(), "{shortfalls:?}");
    assert_eq!(report["lost_exact"], false);
}

/// A later program of the file runs still: then that is known, and said with what was planted.
#[test]
fn programs_that_ended_before_one_whose_file_was_read_are_said_with_it() {
    let mut stopped = Stopped::start(
        "-DPROVIDER=appearing_later",
        "appearing_later:hit",
        "$PROGRAM 0 1; exec $PROGRAM 1 0",
    );
    stopped.shell.say("");
    stopped.own_hit();
    let Stopped {
        lab,
        mut recorder,
        mut shell,
    } = stopped;
    wait_until("the second program", || {
        let executed = fs::read_link(format!("/proc/{}/exe", shell.pid()));
        executed.is_ok_and(|path| path.ends_with("program"))
    });
    recorder.signal("CONT");
    let line = recorder.until_error_line(PLANTED);
    assert!(
        line.contains("and after 1 program that mapped it ended before it was read"),
        "{line}"
    );
    // For hits that are recorded.
    thread::sleep(Duration::from_millis(50));
    shell.say("");
    let own = OwnHits::parse(&shell.line().expect("what it did"));
    shell.finish().success();
    let said = recorder.finish().success().stderr;
    assert!(!said.contains("before its file was read"), "{said}");
    let recorded = Recorded::from_lab(&lab);
    let hits = recorded.hits(1);
    assert!(!hits.is_empty());
    own.are_recorded_after(recorded.gaps[0].time, &hits, "the second program");
    assert!(recorded.hits(0).is_empty());
}
