//! How fast traces are exported: `cargo bench --bench exports`, as root.
//!
//! Recordings of four million events each: calls with one string that is always the same, and SQL statements that differ, each a span.
//! `USDTREC_BENCH_PROGRAM` gives another build of usdtrec that takes turns with this one. CPU time of the program, so that what else
//! the machine does matters little. Prints Markdown, and asserts nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod exported;
mod recorded;
#[path = "../shared/mod.rs"]
mod shared;

use std::path::PathBuf;

use common::Lab;
use shared::{machine, table, timed, whole};

use crate::exported::{Exported, FORMATS};
use crate::recorded::Recorded;
use crate::table::{head, median, row};

/// Rounds of every measurement.
const ROUNDS: usize = 5;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let lab = Lab::privileged();
    println!("{}\n", machine::describe());
    let mut programs = vec![PathBuf::from(lab.command([""]).get_program())];
    programs.extend(std::env::var_os("USDTREC_BENCH_PROGRAM").map(PathBuf::from));
    for recorded in [recorded::calls(&lab), recorded::statements(&lab)] {
        compare(&lab, &programs, &recorded);
    }
}

/// Measures and prints.
fn compare(lab: &Lab, programs: &[PathBuf], recorded: &Recorded) {
    println!(
        "{}: {} events, {} spans; CPU time, medians of {ROUNDS} rounds.\n",
        recorded.what, recorded.events, recorded.spans
    );
    head(&[
        "Format",
        "program",
        "M events/s a core",
        "M rows/s a core",
        "bytes a row",
        "peak memory",
    ]);
    for format in FORMATS.iter().filter(|one| (one.rows)(recorded) > 0) {
        let mut taken: Vec<Vec<Exported>> = vec![Vec::new(); programs.len()];
        for _ in 0..ROUNDS {
            for (taken, program) in taken.iter_mut().zip(programs) {
                taken.push(format.export(lab, program, recorded));
            }
        }
        let rows = (format.rows)(recorded) as f64;
        for (taken, program) in taken.iter().zip(programs) {
            let cpu = median(&taken.iter().map(|one| one.cpu).collect::<Vec<f64>>());
            let memory = taken.iter().map(|one| one.memory).max().unwrap_or(0);
            let bytes = taken.first().map_or(0, |one| one.bytes);
            row(&[
                format!("`{}`", format.name),
                program.display().to_string(),
                format!("{:.2}", recorded.events as f64 / cpu / 1e6),
                format!("{:.2}", rows / cpu / 1e6),
                format!("{:.1}", bytes as f64 / rows),
                format!("{} MiB", memory >> 20),
            ]);
        }
    }
    println!();
}
