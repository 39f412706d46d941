//! Spans of real programs: against what the programs know of themselves, and against a walk over what `script` prints.

mod calls;
mod options;
mod overlapping;
mod postgres;
mod programs;
mod requests;
mod runtimes;
mod walk;

pub(crate) use calls::record as record_calls;
