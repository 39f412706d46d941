//! The summary of a trace: probes, arguments, processes, what stands out.

pub mod busiest;
pub mod counts;
pub mod facts;
pub mod next;
pub mod probe;
pub(crate) mod recount;
pub mod unusual;
