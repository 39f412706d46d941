//! Answers to questions about a trace, as plain data: numbers are numbers, and nothing is rendered.

pub(crate) mod answer;
pub(crate) mod clock_facts;
pub(crate) mod diff;
pub(crate) mod groups;
pub(crate) mod heatmap;
pub(crate) mod histogram;
pub(crate) mod live_counts;
pub(crate) mod losses;
pub(crate) mod measured;
pub(crate) mod origin;
pub(crate) mod overview;
pub mod question;
pub(crate) mod rate;
pub(crate) mod rows;
pub(crate) mod samples;
pub(crate) mod span_report;
pub(crate) mod spans;
pub(crate) mod stacks;
pub(crate) mod summary;
pub(crate) mod text_walk;
pub(crate) mod values;
