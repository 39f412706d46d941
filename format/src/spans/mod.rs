//! Spans, from the hit of one probe to that of another: which probes begin and end one, by their names, which arguments both have in common, and which
//! begin an end takes ([`OpenBegins`]). A recorder and a reader decide the same.

mod asked;
mod known;
mod marks;
mod names;
mod open_begins;
mod shared_arguments;

pub use asked::{SpanNameError, asked_pairs};
pub use marks::{Marks, mark, mark_of_number};
pub use names::{NamedPair, SpanSides, begins_call, pairs, short_name};
pub use open_begins::{OpenBegin, OpenBegins, OpenByKey, PROGRAM_LEVELS, PlainBegin};
pub use shared_arguments::{
    LiveAgreement, SharedArgument, argument_place, common_id, common_place, live_agreement,
    may_be_id, place_of_key, shared_arguments,
};
