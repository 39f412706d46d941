//! Programs that start all the time.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use usdtrec_testing::{is_deep, number};

use super::{PLANTED, program, waiting_recorder};
use crate::common::{Build, Lab, Process, path_text, test};

/// Starts each second.
const RATE: u64 = 200;

/// What a process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    /// Others than sockets and pidfds.
    descriptors: usize,
    /// Descriptors of links of BPF programs.
    links: usize,
    /// Sockets and pidfds: of helpers that read files, of which there are more or fewer.
    of_processes: usize,
}

/// Sockets and pidfds of helpers, at most.
const OF_HELPERS: usize = 16;

impl Open {
    fn from_pid(pid: u32) -> Self {
        let listed = fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
        let open = listed.flatten().filter_map(|entry| {
            let file = fs::read_link(entry.path()).ok()?;
            let info = format!("/proc/{pid}/fdinfo/{}", entry.file_name().display());
            Some((file, fs::read_to_string(info).ok()?))
        });
        let is_of_process = |file: &PathBuf| {
            let file = file.to_string_lossy();
            file.starts_with("socket:")
                || file == "anon_inode:[pidfd]"
                || file.starts_with("pidfd:")
        };
        let (of_processes, others): (Vec<_>, Vec<_>) =
            open.partition(|(file, _)| is_of_process(file));
        let infos: Vec<String> = others.into_iter().map(|(_, info)| info).collect();
        let is_link = |info: &&String| info.contains("link_id:");
        Self {
            descriptors: infos.len(),
            links: infos.iter().filter(is_link).count(),
            of_processes: of_processes.len(),
        }
    }

    /// The least of some looks: files are opened and closed all the time.
    fn least(pid: u32) -> Self {
        let look = |_| {
            thread::sleep(Duration::from_millis(20));
            Self::from_pid(pid)
        };
        (0..20).map(look).min().expect("some")
    }
}

/// Memory of a process that only it has, KB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words.and_then(|kb| kb.parse().ok()).expect("RssAnon")
}

#[test]
fn many_starts_leave_nothing_in_the_recorder() {
    let seconds = number("USDTREC_START_SECONDS", if is_deep() { 600 } else { 10 });
    let lab = Lab::privileged();
    let program = program(&lab, "-DPROVIDER=appearing_starts");
    let build = Build {
        options: &["-O2", "-DPROVIDER=appearing_starter"],
        ..Build::USUAL
    };
    let starter = build.make(&lab, "crowd.c", "crowd");
    let mut recorder = waiting_recorder(&lab, "appearing_starts:hit", &[]);
    let mut first = Command::new(&program);
    first.args(["0", "0"]);
    let mut first = Process::spawn(first);
    recorder.until_error_line(PLANTED);
    first.say("");
    first.finish().success();
    let run_once = |seconds: u64| {
        let mut command = Command::new(&starter);
        let number = (RATE * seconds).to_string();
        command.args(["starts", &RATE.to_string(), &number]);
        command.args([path_text(&program), "1", "2"]);
        let finished = Process::spawn(command).finish().success();
        assert_eq!(finished.stdout.lines().last(), Some(&*number));
    };
    // A process is waited for for less than all of the time.
    let run = |seconds: u64| {
        const EACH: u64 = 60;
        (0..seconds / EACH).for_each(|_| run_once(EACH));
        if !seconds.is_multiple_of(EACH) {
            run_once(seconds % EACH);
        }
    };
    let look = || (Open::least(recorder.pid()), memory(recorder.pid()));
    run(seconds / 5);
    let (open, before) = look();
    run(seconds - seconds / 5);
    let (open_after, after) = look();
    println!("{seconds} s: {open_after:?}, {before} KB, then {after} KB");
    let others = |open: Open| (open.descriptors, open.links);
    assert_eq!(others(open_after), others(open));
    assert!(open_after.of_processes <= open.of_processes + OF_HELPERS);
    // What is known of each process with hits is kept.
    let most = before + 8192 + RATE * seconds / 4;
    assert!(
        after < most,
        "memory of the recorder: {before} KB, then {after} KB"
    );
    recorder.signal("INT");
    let said = recorder.finish().success();
    said.complains(" 0 lost").complains("followed: 1 file");
    let events = lab.events("trace");
    let started = events.iter().filter(|event| event.integer(1) == 1);
    assert_eq!(started.count() as u64, 2 * RATE * seconds);
}
