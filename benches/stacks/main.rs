//! Stacks beside stock perf and bpftrace, in one run: `cargo bench --bench stacks`, as root, on an idle machine.
//!
//! bpftrace is `$BPFTRACE`, or that of `$PATH`, and the perf that reads stacks is `$PERF`. Prints Markdown. Nothing is asserted:
//! absolute times belong to a machine, and the ratios are what to look at.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

mod bpftrace;
#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod deep;
mod hits;
mod names;
#[path = "../shared/mod.rs"]
mod shared;
mod unwinding;
mod wide;

use common::{Lab, Perf};
use shared::{cpu_time, hot, machine, table, timed, whole};

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
    hits::compare(&lab, &perf);
    unwinding::compare(&lab, &perf);
    wide::compare(&lab);
    names::show(&lab);
}
