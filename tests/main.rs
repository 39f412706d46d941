//! End to end: the built binary against real programs, against stock perf, and in trouble.
//!
//! Tests that record need root. Without it they are skipped and counted as ignored; with `CI=true` that is a failure. So
//! `#[test]` is that of `usdtrec_testing`, and a file of tests imports it.
//! They leave nothing: every process is ended by its id, every directory is removed, and what stock perf
//! puts into tracefs is taken out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

mod another_reader;
mod appearing;
mod archive;
mod argument_locations;
mod attach;
mod bpf;
mod budget;
mod builds;
mod cache;
mod callers;
mod cgroups;
mod changed_outputs;
mod changed_programs;
#[path = "hostile/changes.rs"]
mod changes;
mod chosen;
mod clocks;
mod common;
mod contained;
mod context;
mod copied_code;
mod cxx;
mod debug_info;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod demo;
mod diff;
mod doctor;
mod documents;
mod escapes;
mod export;
mod expressions;
mod extreme_values;
mod far_semaphore;
mod file_readers;
mod filter;
mod first_minute;
mod first_thread_ended;
#[cfg(feature = "flame")]
mod flame;
mod flight_recorder;
mod followed;
mod functions;
mod handmade;
mod held_children;
mod hostile_files;
mod import;
mod inherited;
mod java;
mod jit_dumps;
mod kill;
mod kill_matrix;
mod layers;
mod literals;
mod live;
mod live_tables;
mod losses;
mod man_and_completions;
mod mapped_twice;
mod metrics;
mod no_follow;
mod no_gap;
mod node;
mod nonresident;
mod nop_prefixes;
mod off_cpu;
mod one_place;
mod opened_files;
mod operands;
mod option_pairs;
mod options;
mod other_processes;
mod output;
mod outputs;
mod packages;
mod parents;
mod perf_maps;
mod php;
mod php_fpm;
mod pipe;
mod postgresql;
mod probes_without_events;
mod python;
mod random;
mod rates;
mod record_filter;
mod recording_end;
mod refusals;
mod registered_tests;
mod reused_pids;
mod ruby;
mod running;
mod runtime_probes;
mod same_answers;
mod same_meaning;
mod schema;
mod schema_directory;
mod script_and_report;
mod script_stacks;
mod selected_patterns;
mod semaphores;
mod service;
mod several_files;
mod shared_cache;
mod shown_arguments;
mod silent_files;
mod sites;
mod size_control;
mod slow_spans;
mod spans;
mod stacks;
mod stat;
mod stat_keys;
mod stat_numbers;
mod stat_spans;
mod stat_stacks;
mod stock_arguments;
mod stock_files;
mod stock_perf;
mod suggested_commands;
mod suggested_options;
mod terminal_texts;
mod thread_context;
mod trace_room;
mod undisturbed_programs;
mod users;
mod verified;
mod written_files;

fn main() -> std::process::ExitCode {
    usdtrec_testing::main()
}
