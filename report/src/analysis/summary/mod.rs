//! The summary of a trace: probes, arguments, processes, what stands out.

pub(crate) mod busiest;
pub(crate) mod counts;
pub(crate) mod facts;
pub(crate) mod next;
pub(crate) mod probe;
pub(crate) mod recount;
pub(crate) mod unusual;
