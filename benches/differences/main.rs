//! How often `diff` calls like recordings different, and how often it finds a difference: `cargo bench --bench differences`.
//!
//! Prints tables with the bars beside the figures. The first is of recordings made by hand, which are written to files and compared as `usdtrec diff` does:
//! like ones with several distributions of latencies, independent and under load that comes and goes (an autoregressive series, with which a
//! twentieth of the recording resembles the next by 0.7; the logarithms of latencies and of the time between requests have a standard deviation
//! of 0.2 by it), and ones with a difference. The second is of a real program on this machine, made busy; it needs root. Arguments are `simulated` or
//! `real`, the number of pairs, and the seed of the first one made by hand: those from 0 to 399 were looked at when constants of `diff` were chosen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has no other way to say so"
)]

#[path = "../../tests/common/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod common;
mod real;
mod simulated;
#[path = "../../report/tests/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;
#[path = "../shared/table.rs"]
#[allow(dead_code, reason = "other benchmarks use the rest")]
mod table;

use serde_json::Value;

/// Pairs of recordings of each line, made by hand.
const PAIRS: usize = 400;
/// Of each line of real ones.
const REAL_PAIRS: usize = 20;
/// The figures that are looked at.
const FIGURES: [&str; 4] = ["rate", "p50", "p90", "p99"];

/// In how many pairs each figure was beyond noise.
type Found = [usize; FIGURES.len()];

fn main() {
    // `cargo test --benches` only builds.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let is_asked = |name: &str| {
        let mut others = arguments.iter().filter(|one| !one.starts_with('-'));
        !others.any(|one| one.parse::<usize>().is_err() && one != name)
    };
    let mut numbers = arguments.iter().filter_map(|one| one.parse().ok());
    let (pairs, seed) = (numbers.next(), numbers.next().unwrap_or(0));
    if is_asked("simulated") {
        simulated::run(seed..seed + pairs.unwrap_or(PAIRS));
    }
    if is_asked("real") {
        real::run(pairs.unwrap_or(REAL_PAIRS));
    }
}

/// Adds the figures of a comparison that are beyond noise.
fn add(found: &mut Found, comparison: &Value) {
    let figures = comparison["figures"].as_array().expect("figures");
    for (count, name) in found.iter_mut().zip(FIGURES) {
        let is_beyond = |figure: &&Value| {
            figure["figure"] == name
                && figure["kind"] != "argument"
                && figure["verdict"] == "beyond"
        };
        // A rate is that of the begins: those of the ends are nearly the same.
        *count += usize::from(figures.iter().any(|figure| is_beyond(&figure)));
    }
}

fn head(first: &str) {
    table::head(&[&[first, "spans", "pairs"], &FIGURES[..], &["bar"]].concat());
}

fn row(name: String, spans: impl ToString, pairs: usize, found: Found, bar: &str) {
    let counts = found.map(|count| count.to_string());
    let first = [name, spans.to_string(), pairs.to_string()];
    table::row(&[&first[..], &counts[..], &[bar.to_owned()]].concat());
}
