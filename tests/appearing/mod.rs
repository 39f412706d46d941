//! Programs that appear while recording, wherever their files are. Each prints the time of each of its hits: those that are recorded and those in
//! the gap that the recorder reports are all of them.

mod crowds;
mod ended;
mod hostile_paths;
mod kinds;
mod postgresql;
mod silent_files;
mod starts;
mod upgrades;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Build, Event, Lab, Process, copy_program, need_tool};

/// What the recorder says of a file that it planted.
const PLANTED: &str = "attached 1 probe ";

/// Where a program is that appears, as commands of a shell. The variables are paths without blanks: `$PROGRAM` is a copy of the program and
/// `$DIR` an empty folder, both of this place only. `$HITS` are the program's first arguments.
#[derive(Clone, Copy, Debug)]
struct ProgramPlace {
    name: &'static str,
    script: &'static str,
}

/// What a program printed.
#[derive(Debug)]
struct OwnHits {
    pid: u64,
    /// The first argument of its probe.
    first: u64,
    /// When it started, ns.
    start: u64,
    /// When it hit, ns.
    times: Vec<u64>,
}

impl OwnHits {
    #[track_caller]
    fn parse(line: &str) -> Self {
        let mut numbers = line
            .split(' ')
            .map(|word| word.parse().expect("the program prints numbers"));
        Self {
            pid: numbers.next().expect("a process id"),
            first: numbers.next().expect("a number"),
            start: numbers.next().expect("a time"),
            times: numbers.collect(),
        }
    }

    /// Asserts that the last hits are recorded, and that all others were in the gap after the file was mapped. All may have been, on a busy machine.
    #[track_caller]
    fn are_recorded_after(&self, gap: Option<Duration>, recorded: &[&Event], what: &str) {
        let times: Vec<u64> = recorded.iter().map(|hit| hit.integer(3) as u64).collect();
        let missed = self.times.len().checked_sub(times.len());
        let missed = missed.unwrap_or_else(|| panic!("{what}: hits that were none"));
        assert_eq!(times, self.times[missed..], "{what}");
        let numbers: Vec<i128> = recorded.iter().map(|hit| hit.integer(2)).collect();
        let last = self.times.len() as i128;
        assert_eq!(
            numbers,
            (missed as i128 + 1..=last).collect::<Vec<_>>(),
            "{what}"
        );
        let Some(gap) = gap else {
            return;
        };
        // The file was mapped before the program started.
        let planted = self.start + gap.as_nanos() as u64;
        let outside = self.times[..missed].iter().filter(|time| **time > planted);
        assert_eq!(
            outside.count(),
            0,
            "{what}: hits after the reported gap of {gap:?}"
        );
    }
}

/// A program with the probe of a provider that no other test has: `-DPROVIDER=…`.
fn program(lab: &Lab, provider: &'static str) -> PathBuf {
    let build = Build {
        options: Vec::leak(vec!["-O2", "-static", provider]),
        ..Build::USUAL
    };
    build.make(lab, "appearing.c", "program")
}

/// A command that runs a program in a place.
fn command(lab: &Lab, program: &Path, place: ProgramPlace, number: usize, hits: u64) -> Command {
    let file = |what: &str| lab.file(&format!("{what}-{number}"));
    let _ = fs::create_dir(file("dir"));
    // A new inode each time.
    let _ = fs::remove_file(file("program"));
    copy_program(program, file("program"));
    let mut command = lab.at_home(Path::new("sh"), ["-c", place.script]);
    command.env("PROGRAM", file("program"));
    command.env("DIR", file("dir"));
    command.env("HITS", format!("{number} {hits}"));
    command
}

/// Runs a program in each place, one after the other, until a recorder has planted its file and longer. What each printed.
#[track_caller]
fn run_until_planted(
    lab: &Lab,
    program: &Path,
    recorder: &mut Process,
    places: &[ProgramPlace],
    mut meanwhile: impl FnMut(&mut Process),
) -> Vec<OwnHits> {
    let run = |(number, place): (usize, &ProgramPlace)| {
        let mut process = Process::spawn(command(lab, program, *place, number, 0));
        recorder.until_error_line(PLANTED);
        meanwhile(&mut process);
        // For hits that are recorded.
        thread::sleep(Duration::from_millis(50));
        process.say("");
        let line = process.line();
        let line = line.unwrap_or_else(|| panic!("{}: it has ended", place.name));
        process.finish().success();
        OwnHits::parse(&line)
    };
    places.iter().enumerate().map(run).collect()
}

/// A recorder that waits for programs.
fn waiting_recorder(lab: &Lab, event: &str, options: &[&str]) -> Process {
    let mut command = lab.command(["record", "-a", "-o", "trace", "-e", event]);
    command.args(options);
    let mut recorder = Process::spawn(command);
    recorder.until_error_line("[ usdtrec record: 0 probes");
    recorder
}

/// The gap that is reported of a file.
struct Gap {
    /// The first process that mapped the file.
    pid: u64,
    /// `None` if it is not known, because the record of the mapping was lost.
    time: Option<Duration>,
}

/// What a recording has of the files that appeared.
struct Recorded {
    events: Vec<Event>,
    /// In the order in which they were planted.
    gaps: Vec<Gap>,
}

impl Recorded {
    #[track_caller]
    fn from_lab(lab: &Lab) -> Self {
        let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
        let report: Value = serde_json::from_str(&report.success().stdout).expect("an object");
        let shortfalls = report["shortfalls"].as_array().expect("a list");
        // Beside these tests others map very many files.
        let are_lost = shortfalls.iter().any(|one| {
            let found = one["found"].as_str().expect("a text");
            found.contains("process record") && found.contains("lost")
        });
        let of_files = shortfalls.iter().filter(|one| one["kind"] == "followed");
        let gaps = of_files.map(|file| {
            let time = file["gap_ns"].as_u64().map(Duration::from_nanos);
            assert!(time.is_some() || are_lost, "{file}");
            let pid = file["pids"][0].as_u64().expect("a process");
            Gap { pid, time }
        });
        Self {
            gaps: gaps.collect(),
            events: lab.events("trace"),
        }
    }

    /// The hits whose first argument is this one.
    fn hits(&self, first: u64) -> Vec<&Event> {
        let events = self.events.iter();
        events
            .filter(|event| event.integer(1) == i128::from(first))
            .collect()
    }
}

/// Asserts that what programs printed, which appeared first, is what is recorded.
#[track_caller]
fn check(lab: &Lab, places: &[ProgramPlace], own: &[OwnHits]) {
    let recorded = Recorded::from_lab(lab);
    for (number, (place, own)) in places.iter().zip(own).enumerate() {
        let hits = recorded.hits(number as u64);
        own.are_recorded_after(recorded.gaps[number].time, &hits, place.name);
        if let Some(hit) = hits.first() {
            assert_eq!(
                u64::from(hit.pid),
                recorded.gaps[number].pid,
                "{}",
                place.name
            );
        }
    }
}

/// Skips the test without the programs that places need.
#[track_caller]
fn need_tools() {
    need_tool("unshare");
    need_tool("chroot");
}
