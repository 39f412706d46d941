//! Whether counts are lost under load, and what the recorder does while hits are counted.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::common::{Build, Lab, Process};
use super::table::{head, row};
use super::{hot, stat};

/// Hits of each of two threads.
const HITS: usize = 2_000_000;
/// How long the recorder is watched.
const TIME: Duration = Duration::from_secs(10);
const KEYS: u32 = 1000;

/// Two threads on two CPUs: what is counted, and at which rate.
pub(crate) fn loss(lab: &Lab, program: &Path) {
    println!("Two threads, {HITS} hits each. Bar: no count is lost at 1,000,000 hits/s.\n");
    head(&["counted", "hits/s", "hits", "counted", "lost"]);
    for (what, kind, event, options) in [
        ("hits", "req", "req", &[][..]),
        (
            "hits by a string",
            "url",
            "url(url=str(arg2))",
            &["--by", "url"],
        ),
        ("hits by the stack", "deep", "deep", &["--by", "stack"]),
        (
            "histogram of 1000 keys",
            "keys",
            "keys",
            &["--by", "arg1", "--hist", "arg2"],
        ),
    ] {
        let waiting = hot::start(program, HITS, 2, kind);
        let options = [&["--format", "json"], options].concat();
        let event = stat::event(program, event);
        let stat = stat::start(lab, waiting.pid(), &event, &options);
        let begun = Instant::now();
        waiting.run();
        let seconds = begun.elapsed().as_secs_f64();
        let ended = stat.finish().success();
        let lines = ended.stdout.lines();
        let lines =
            lines.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let number = |line: &serde_json::Value, name: &str| line[name].as_u64().unwrap_or(0);
        let (counted, lost) = lines.fold((0, 0), |(counted, lost), line| {
            (
                counted + number(&line, "count"),
                lost + number(&line, "lost"),
            )
        });
        let hits = 2 * HITS as u64;
        row(&[
            what.to_owned(),
            format!("{:.0}", hits as f64 / seconds),
            hits.to_string(),
            counted.to_string(),
            match counted == hits {
                true => lost.to_string(),
                false => format!("{lost}, and {} are not accounted for", hits - counted),
            },
        ]);
    }
    println!();
}

/// CPU time and bytes read of a process.
#[derive(Clone, Copy)]
struct Work {
    cpu: Duration,
    read: u64,
}

impl Work {
    fn from_pid(pid: u32) -> Self {
        let schedule = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
        let of_thread = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
            ns.unwrap_or(0)
        };
        let ns = schedule.flatten().map(of_thread).sum();
        let io = fs::read_to_string(format!("/proc/{pid}/io")).expect("its bytes");
        let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        Self {
            cpu: Duration::from_nanos(ns),
            read: read.and_then(|read| read.parse().ok()).expect("a number"),
        }
    }
}

/// The recorder's CPU time, and what it reads, at two rates: 1000 keys with a histogram each, once a second.
pub(crate) fn work(lab: &Lab) {
    println!(
        "The recorder with {KEYS} keys of one histogram each, -I 1s, for {} s. Bars: at most 1 % of a CPU; what it reads does not grow with the rate.\n",
        TIME.as_secs()
    );
    head(&["hits/s", "CPU", "bytes read a second"]);
    let keys = Build::USUAL.make(lab, "keys.c", "keys");
    // µs between two hits of each of two processes.
    for pause in [150, 0] {
        let mut all: Vec<Process> = (0..2)
            .map(|_| Process::spawn(Command::new(&keys)))
            .collect();
        let pids: Vec<String> = all.iter().map(|one| one.pid().to_string()).collect();
        let event = format!("sdt_keys:number@{}", keys.display());
        let options = ["--by", "arg1", "--hist", "arg2", "-I", "1s", "-o", "counts"];
        let pids = pids.join(",");
        let further = [&options[..], &["-p", &pids]].concat();
        let first = all[0].pid();
        let stat = stat::start(lab, first, &event, &further);
        let seconds = TIME.as_secs() + 4;
        for one in &mut all {
            one.say(&format!("slow {pause}"));
            one.line();
            one.say(&format!("load {seconds} {KEYS}"));
        }
        // All keys are there, and their intervals have begun.
        std::thread::sleep(Duration::from_secs(2));
        let before = Work::from_pid(stat.pid());
        let begun = Instant::now();
        std::thread::sleep(TIME);
        let after = Work::from_pid(stat.pid());
        let elapsed = begun.elapsed().as_secs_f64();
        let hits = all.iter_mut().map(|one| {
            let line = one.line().expect("a line");
            let hits = line.strip_prefix("hits ").expect("hits");
            hits.parse::<u64>().expect("a number")
        });
        let hits: u64 = hits.sum();
        drop(all);
        drop(stat.finish().success());
        let cpu = (after.cpu - before.cpu).as_secs_f64();
        row(&[
            format!("{:.0}", hits as f64 / seconds as f64),
            format!("{:.2} %", 100.0 * cpu / elapsed),
            format!("{:.0}", (after.read - before.read) as f64 / elapsed),
        ]);
    }
    println!();
}
