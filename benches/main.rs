//! usdtrec beside stock perf, in one run: `cargo bench`, as root, on an idle machine.
//!
//! Every figure is the median of five rounds, in which all candidates take turns. Prints Markdown. Nothing is
//! asserted: absolute times belong to a machine, and the ratios are what to look at.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

mod attaching;
mod cache;
#[path = "../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod kinds;
mod reading;
mod recording;
mod shared;
mod trap;

use common::{Lab, Perf};
use shared::{cpu_time, hot, machine, table, timed};

/// Rounds of every measurement.
const ROUNDS: usize = 5;

fn main() {
    // `cargo test --benches` only builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    println!("{}\n", machine::describe());
    let recorded = recording::compare(&lab, &perf);
    reading::compare(&lab, &perf, &recorded);
    kinds::compare(&lab, &perf);
    trap::compare(&lab);
    attaching::compare(&perf);
    cache::compare();
}
