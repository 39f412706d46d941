//! Spans: from the hit of one probe to that of another, as from `query__start` to `query__done`.
//!
//! A hit that begins a span waits, under its key (its thread, its process, or the value of an argument), for the next one that ends
//! it; several wait like brackets, so that recursive functions come out right. What belongs to one key must be seen in the
//! order of time, other things need not: so each window of samples matches its own brackets in parallel, and only what stays
//! open in it, or ends what began before it, is matched across windows, one after the other.

mod bracket;
mod key;
mod known;
mod named;
mod names;
mod pair;
mod role;
mod tally;
mod walk;

pub(crate) use self::bracket::{BracketKey, Brackets, OpenSpans};
pub(crate) use self::key::SpanKey;
pub(crate) use self::named::fold_with_spans;
pub(crate) use self::pair::Pair;
pub(crate) use self::role::Role;
pub(crate) use self::tally::{Durations, MOST_SPAN_GROUPS, PairTally, Slow};
pub(crate) use self::walk::{SpanOptions, SpanWalk, Spans};
