//! The crate's tests against recordings made by hand, and against stock perf.
//!
//! They are one program: each program links the crate with all that it uses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

mod added_events;
mod answers;
mod clocks;
mod deferred_chains;
mod diff;
mod digests;
mod enclosing;
mod exact_numbers;
mod exact_views;
mod fields;
mod joined;
mod many_groups;
mod numbers;
mod order;
mod pauses;
mod processes;
mod report;
mod script;
mod shown_arguments;
mod span_cover;
mod span_field;
mod span_filter;
mod span_ids;
mod span_stack;
mod spans;
mod stock_perf;
mod support;
mod time_parts;
mod unusual;
mod waits;

fn main() -> std::process::ExitCode {
    usdtrec_testing::main()
}
