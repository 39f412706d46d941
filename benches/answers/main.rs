//! How fast questions are answered: `cargo bench --bench answers`, as root, on an idle machine.
//!
//! A recording of a real program of four million events, compressed, which stock perf reads too, and one of a hundred million for
//! what memory it takes (`USDTREC_BENCH_EVENTS` gives another number for that; half a gigabyte of disk). Prints Markdown, and asserts nothing but that both saw the same events.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot run has no other way to say so"
)]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod limits;
mod memory;
mod questions;
#[path = "../shared/mod.rs"]
mod shared;
mod stages;

use std::path::PathBuf;

use common::{Build, Lab, Perf};
use shared::{machine, table, timed, whole};

use crate::whole::WholeRecording;

/// Rounds of every measurement.
const ROUNDS: usize = 5;
/// Events of a request, of which one in sixteen calls a function that calls itself twice on average.
const EVENTS_A_REQUEST: f64 = 2.25;

/// A trace, and how many events it has.
struct Recorded {
    file: PathBuf,
    events: u64,
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let recorded = record(&lab, "short", 4e6);
    println!("{}\n", machine::describe());
    questions::compare(&lab, &perf, &recorded);
    let events = std::env::var("USDTREC_BENCH_EVENTS");
    let events = events.map_or(1e8, |text| text.parse().expect("a number of events"));
    // While this process is small: the kernel counts the memory that a child shares with it before it runs its program.
    let long = record(&lab, "long", events);
    memory::show(&lab, &recorded, &long);
    stages::show(&lab, &recorded);
}

/// Records about so many events of two threads, whole.
fn record(lab: &Lab, name: &str, events: f64) -> Recorded {
    let program = Build::USUAL.make(lab, "requests.c", "requests");
    let program = program.to_str().expect("a path");
    let requests = (events / EVENTS_A_REQUEST / 2.0) as u64;
    let event = format!("sdt_requests:*@{program}");
    let recording = WholeRecording {
        file: name,
        event: &event,
        options: &[],
        command: &[program, &requests.to_string(), "2"],
    };
    Recorded {
        file: lab.file(name),
        events: recording.make(lab),
    }
}
