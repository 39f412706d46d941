//! What a hit with its stack costs the traced program.

use std::path::Path;

use crate::ROUNDS;
use crate::bpftrace;
use crate::common::{Lab, Perf, Recorder};
use crate::deep::Deep;
use crate::hot::{self, HotTime};
use crate::table::{head, median, ratio, row};

/// Hits of a round: their copies of 2 KiB fit into the ring, so that nobody gains by losing events.
const HITS: usize = 20_000;
const RING: &str = "64M";
/// Frames of recursion: with those of the thread's start and of `hits`, 14 frames.
const DEPTH: &str = "10";
/// Index of the candidate that only pays the trap.
const TRAP: usize = 1;
/// Index of the candidate that takes no stack.
const NO_STACK: usize = 2;
/// Indexes of candidates that take the same stack.
const PAIRS: [(usize, usize); 5] = [(3, 9), (5, 8), (5, 6), (4, 7), (3, 7)];

/// Who watches.
#[derive(Clone, Copy)]
enum Watcher {
    Nobody,
    Ours(&'static [&'static str]),
    Perf(&'static str),
    Bpftrace(&'static str),
}

/// A row of the table.
struct Candidate {
    name: &'static str,
    watcher: Watcher,
    frame_pointers: bool,
}

const fn candidate(name: &'static str, watcher: Watcher, frame_pointers: bool) -> Candidate {
    Candidate {
        name,
        watcher,
        frame_pointers,
    }
}

const CANDIDATES: [Candidate; 10] = [
    candidate("nobody", Watcher::Nobody, false),
    candidate(
        "usdtrec, `--filter` that is true of no hit",
        Watcher::Ours(&["--filter", "arg1 < 0"]),
        false,
    ),
    candidate("usdtrec, no stack", Watcher::Ours(&[]), false),
    candidate("`usdtrec record -g`", Watcher::Ours(&["-g"]), false),
    candidate(
        "`usdtrec record --call-graph dwarf,2048`",
        Watcher::Ours(&["--call-graph", "dwarf,2048"]),
        false,
    ),
    candidate(
        "`usdtrec record --call-graph fp`",
        Watcher::Ours(&["--call-graph", "fp"]),
        true,
    ),
    candidate("`perf record -g`", Watcher::Perf("fp"), true),
    candidate(
        "`perf record --call-graph dwarf,2048`",
        Watcher::Perf("dwarf,2048"),
        false,
    ),
    candidate(
        "bpftrace `@[ustack] = count()`",
        Watcher::Bpftrace("@[ustack] = count();"),
        true,
    ),
    candidate(
        "bpftrace `@[dw_ustack] = count()`",
        Watcher::Bpftrace("@[dw_ustack] = count();"),
        false,
    ),
];

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>) {
    let deep = Deep::make(lab);
    let mut rounds: Vec<Vec<f64>> = CANDIDATES.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (candidate, rounds) in CANDIDATES.iter().zip(&mut rounds) {
            let program = if candidate.frame_pointers {
                &deep.with_frame_pointers
            } else {
                &deep.without_frame_pointers
            };
            rounds.extend(watched(candidate.watcher, lab, perf, program));
        }
    }
    print(&rounds);
}

/// CPU time of a hit, ns; `None` if the watcher cannot be had.
fn watched(watcher: Watcher, lab: &Lab, perf: &Perf<'_>, program: &Path) -> Option<f64> {
    let per_hit = |time: HotTime| time.hits / HITS as f64;
    let start = |hits: usize| hot::start(program, hits, 1, DEPTH);
    let run = || per_hit(start(HITS).run());
    match watcher {
        Watcher::Nobody => Some(run()),
        Watcher::Ours(options) => {
            let event = format!("sdt_deep:hit@{}", program.display());
            let usual = ["-m", RING, "-a", "-o", "ours", "-e", &event];
            let recorder = Recorder::start(lab, [&usual[..], options].concat());
            // The room for stacks is learned by what the first of them need.
            start(100).run();
            std::thread::sleep(std::time::Duration::from_millis(100));
            let time = run();
            drop(recorder.stop().complains(" 0 lost"));
            Some(time)
        }
        Watcher::Perf(mode) => {
            let _probes = perf.plant(program, "deep", &["hit"]);
            let file = lab.file("theirs");
            let mut arguments = vec!["record", "-q", "-m", RING, "-a", "-e", "sdt_deep:hit"];
            arguments.extend(["--call-graph", mode, "-o"]);
            arguments.push(file.to_str().expect("a path in UTF-8"));
            let recorder = hot::armed_perf(perf, arguments);
            let time = run();
            drop(recorder.finish().success());
            Some(time)
        }
        Watcher::Bpftrace(action) => {
            let waiting = start(HITS);
            let process = bpftrace::start(program, waiting.pid(), action)?;
            let time = per_hit(waiting.run());
            process.signal("INT");
            drop(process.finish());
            Some(time)
        }
    }
}

fn print(rounds: &[Vec<f64>]) {
    println!(
        "One thread hits a probe below 14 frames {HITS} times; `-a`, rings of {RING}; CPU time of the program.\n"
    );
    println!(
        "bpftrace: {}\n",
        bpftrace::version().unwrap_or_else(|| "not installed".to_owned())
    );
    head(&[
        "Watched by",
        "frame pointers",
        "ns per hit",
        "more than without a stack",
        "beside the trap",
    ]);
    let rounds_of = |index: usize| rounds.get(index).filter(|rounds| !rounds.is_empty());
    let medians: Vec<Option<f64>> = (0..CANDIDATES.len())
        .map(|index| rounds_of(index).map(|rounds| median(rounds)))
        .collect();
    for (candidate, &time) in CANDIDATES.iter().zip(&medians) {
        let Some(time) = time else {
            row(&[candidate.name.to_owned(), "cannot be run".to_owned()]);
            continue;
        };
        let with_stack = !matches!(candidate.watcher, Watcher::Nobody);
        let beside = |other: usize| medians[other].unwrap_or(f64::NAN);
        row(&[
            candidate.name.to_owned(),
            if candidate.frame_pointers {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
            format!("{time:.0}"),
            if with_stack {
                format!("{:+.0}", time - beside(NO_STACK))
            } else {
                String::new()
            },
            if with_stack {
                ratio(time, beside(TRAP))
            } else {
                String::new()
            },
        ]);
    }
    println!();
    beside_others(&medians);
}

/// The ratios to another way to have the same stack.
fn beside_others(medians: &[Option<f64>]) {
    head(&["", "beside", "ratio"]);
    for (ours, theirs) in PAIRS {
        let ratio = match (medians[ours], medians[theirs]) {
            (Some(ours), Some(theirs)) => ratio(ours, theirs),
            _ => "?".to_owned(),
        };
        let name = |index: usize| CANDIDATES[index].name.to_owned();
        row(&[name(ours), name(theirs), ratio]);
    }
    println!();
}
