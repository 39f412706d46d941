//! Spans, from the hit of one probe to that of another: which probes begin and end one, by their names, and which arguments both have in
//! common. A recorder and a reader decide the same.

mod asked;
mod known;
mod names;
mod shared_arguments;

pub use asked::{SpanNameError, asked_pairs};
pub use names::{NamedPair, SpanSides, pairs, short_name};
pub use shared_arguments::{SharedArgument, argument_place, may_be_id, shared_arguments};
