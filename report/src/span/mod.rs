//! Spans: from the hit of one probe to that of another, as from `query__start` to `query__done`.
//!
//! A hit that begins a span waits, under its key (its thread, its process, or the values of arguments), for the hit that ends it. Under one key
//! they nest as calls do: an end belongs to the newest begin with which its arguments agree, and what began later is unfinished.
//! What belongs to one key must be seen in the order of time, other things need not: so each window of samples matches its own spans in
//! parallel, and only what stays open in it, or may end what began before it, is matched across windows, one after the other.

mod agree;
mod key;
mod known;
mod marks;
mod matcher;
mod named;
mod names;
mod pair;
mod role;
mod slow;
mod stack;
mod tally;
mod walk;

pub(crate) use self::key::SpanKey;
pub(crate) use self::matcher::{Brackets, End, OpenSpans, Segment};
pub(crate) use self::named::fold_with_spans;
pub(crate) use self::pair::Pair;
pub(crate) use self::role::Role;
pub(crate) use self::slow::{SlowBegin, begins};
pub(crate) use self::stack::{Frame, Totals};
pub(crate) use self::tally::{Durations, MOST_SPAN_GROUPS, PairTally, Slow};
pub(crate) use self::walk::{By, Figure, Kept, OTHERS, SpanOptions, SpanWalk, Spans};
