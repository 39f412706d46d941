//! What is done with each input of a fuzz target. The targets in `fuzz_targets/` only call these functions, and so
//! does `cargo test` of the project, with every input that once found a bug.
//!
//! A function panics if something is wrong with us. What is wrong with the input is no reason to.

#![forbid(unsafe_code)]

pub mod cache;
pub mod code_names;
pub mod compact;
pub mod definitions;
pub mod elf;
mod file;
pub mod filters;
pub mod live;
pub mod notes;
pub mod operands;
pub mod patterns;
pub mod peer;
pub mod processes;
pub mod records;
pub mod repair;
pub mod report;
pub mod schemas;
mod shown;
pub mod trace;
pub mod tracing_data;
pub mod unwind;

/// A target's function.
pub type Run = fn(&[u8]);

/// Every target by its name, which is also that of the directory of its inputs in `testdata/fuzz/`.
pub const TARGETS: &[(&str, Run)] = &[
    ("cache", cache::run),
    ("code_names", code_names::run),
    ("definitions", definitions::run),
    ("elf", elf::run),
    ("filters", filters::run),
    ("live", live::run),
    ("notes", notes::run),
    ("operands", operands::run),
    ("patterns", patterns::run),
    ("peer", peer::run),
    ("processes", processes::run),
    ("records", records::run),
    ("report", report::run),
    ("schemas", schemas::run),
    ("trace", trace::run),
    ("tracing_data", tracing_data::run),
    ("unwind", unwind::run),
];
