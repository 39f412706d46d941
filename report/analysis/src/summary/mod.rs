//! The summary of a trace: probes, arguments, processes, what stands out.

pub mod busiest;
pub mod counts;
pub mod facts;
pub(crate) mod frequent_strings;
pub mod next_questions;
pub mod probe;
pub mod unusual;
