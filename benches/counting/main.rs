//! What counting in the kernel costs, beside a program that does nothing and bpftrace, and what the recorder does meanwhile: `cargo bench --bench counting`,
//! as root, on an idle machine.
//!
//! bpftrace is that of Debian sid with all that it needs, which is fetched once, or `$BPFTRACE`. `USDTREC_BENCH_ROUNDS` and `USDTREC_BENCH_PROGRAM` give
//! another number of rounds, and another build; arguments choose measurements: `bars`, `loss`, `recorder`. Beside each figure is the bar. Nothing is asserted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

mod bars;
mod bpftrace;
#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod recorder;
#[path = "../shared/mod.rs"]
mod shared;
mod stat;

use self::common::{Build, Lab};
use shared::{hot, machine, table};

/// Rounds of every bar.
const ROUNDS: usize = 30;

/// With frame pointers, for stacks.
const FRAMED: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-fno-omit-frame-pointer"],
};

fn main() {
    // `cargo test --benches` only builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = asked.iter().filter(|word| !word.starts_with('-')).collect();
    let is_asked = |name: &str| names.is_empty() || names.iter().any(|asked| *asked == name);
    let rounds = std::env::var("USDTREC_BENCH_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let lab = Lab::privileged();
    println!("{}\n", machine::describe());
    let program = FRAMED.make(&lab, "bars.c", "bars");
    if is_asked("bars") {
        bars::compare(&lab, &program, rounds);
    }
    if is_asked("loss") {
        recorder::loss(&lab, &program);
    }
    if is_asked("recorder") {
        recorder::work(&lab);
    }
}
