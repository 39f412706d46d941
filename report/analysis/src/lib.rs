//! Answers to questions about a trace, as plain data: numbers are numbers, and nothing is rendered.

#![forbid(unsafe_code)]

pub mod answer;
pub mod clock_facts;
pub mod context_question;
pub mod counted_histogram;
pub mod counted_numbers;
pub mod diff;
pub(crate) mod enclosing;
pub mod groups;
pub mod heatmap;
pub mod histogram;
pub(crate) mod holders;
pub mod live_counts;
pub mod losses;
pub mod measured_subject;
pub mod origin;
pub mod overview;
pub mod question;
pub mod rate;
pub mod rows;
pub(crate) mod samples;
pub mod span_report;
pub mod spans;
pub mod stacks;
pub mod stats;
pub(crate) mod string_walk;
pub mod summary;
pub(crate) mod values;
