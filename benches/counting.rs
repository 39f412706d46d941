//! What counting a hit in the kernel costs beside a program that does nothing: `cargo bench --bench counting`, as root, on an idle machine.
//!
//! CPU time of the traced program, in ns per hit: the median and the least of 15 rounds, in which all candidates take turns. Nothing is asserted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

#[path = "../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
#[allow(dead_code, reason = "another benchmark uses the rest")]
mod hot;
#[allow(dead_code, reason = "another benchmark uses the rest")]
mod machine;
#[allow(dead_code, reason = "another benchmark uses the rest")]
mod table;

use std::path::Path;

use self::common::{Build, Lab, Process};
use self::table::{head, median, ratio, row};

const ROUNDS: usize = 15;
/// Hits of each thread in a round.
const HITS: usize = 200_000;

/// What is counted, and the options for it. The first is a program that does nothing: its filter reads one register and is true of no hit.
const CASES: [(&str, &[&str]); 7] = [
    ("nothing", &["--filter", "arg1 < 0"]),
    ("hits", &[]),
    ("hits by a number", &["--by", "arg3"]),
    ("sum", &["--value", "arg2"]),
    ("histogram", &["--hist", "arg2"]),
    ("sum by a number", &["--by", "arg3", "--value", "arg2"]),
    ("histogram by a number", &["--by", "arg3", "--hist", "arg2"]),
];

fn main() {
    // `cargo test --benches` only builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let lab = Lab::privileged();
    println!("{}\n", machine::describe());
    let program = Build::USUAL.make(&lab, "kinds.c", "kinds");
    for threads in [1, 2] {
        let mut rounds = CASES.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for ((_, options), rounds) in CASES.iter().zip(&mut rounds) {
                rounds.push(cost(&lab, &program, options, threads));
            }
        }
        println!("{threads} threads, {HITS} hits each\n");
        head(&[
            "counted",
            "median, ns",
            "beside nothing",
            "least, ns",
            "beside nothing",
        ]);
        let least = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
        let [nothing, ..] = &rounds;
        for ((what, _), all) in CASES.iter().zip(&rounds) {
            row(&[
                (*what).to_owned(),
                format!("{:.0}", median(all)),
                ratio(median(all), median(nothing)),
                format!("{:.0}", least(all)),
                ratio(least(all), least(nothing)),
            ]);
        }
        println!();
    }
}

fn cost(lab: &Lab, program: &Path, options: &[&str], threads: usize) -> f64 {
    let waiting = hot::start(program, HITS, threads, "req");
    let pid = waiting.pid().to_string();
    let event = format!("sdt_hot:req@{}", program.display());
    let words = ["stat", "-p", &pid, "-e", &event]
        .into_iter()
        .chain(options.iter().copied());
    let mut stat = Process::spawn(lab.command(words));
    stat.until_error_line("[ usdtrec stat:");
    let hits = waiting.run().hits;
    drop(stat.finish().success().complains(" 0 lost"));
    hits / (HITS * threads) as f64
}
