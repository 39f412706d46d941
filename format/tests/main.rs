//! The crate's tests by its public functions. Those of damaged files, which count memory, and of a writer that is killed are programs of their own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

mod added_events;
mod arch;
mod auxiliary;
mod corpus;
mod examples;
#[cfg(feature = "expressions")]
mod expr;
mod kill;
mod limits;
mod notes;
mod operand_view;
mod operands;
mod pipe;
mod refused_operands;
mod round_trip;
mod samples;
#[cfg(feature = "schemas")]
mod schema_bundled;
#[cfg(feature = "schemas")]
mod schema_files;
mod shared_heads;
mod stock_perf;
mod support;
mod threads;
