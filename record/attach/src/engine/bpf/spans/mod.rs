//! Programs that match spans, so that only the slow ones are recorded.
//!
//! The program of a begin writes its record to an element of a map instead of to the ring, by the span and the thread. The program of an end finds the
//! begin there by the rule of readers ([`OpenBegins`](usdtrec_format::spans::OpenBegins)); what began later is dropped. If the span was slow, both
//! records go to the ring, else they are counted.
//!
//! Where the thread is part of the key, only the thread itself writes to its elements, so it does not matter where a program is preempted. Else a program takes
//! the element before; if another one has it, the hit is counted as not matched. An element is removed when its key has no open span. The kernel uses its
//! memory again at once: a program of a shared key makes sure that an element is still that of its key.
//!
//! The element of a thread alone stays for its next span, which takes half as long, while those that stay are at most half of the map. When they are more,
//! the recorder removes those of threads that have ended.
//!
//! Where spans are aggregated ([`total`]), no record is written: the element of a begin has the key of its group in place of a record, in a slot as that of
//! [`aggregate`](super::aggregate), and the end adds the duration to the numbers of the group.
//!
//! A begin's record comes to the ring with its end, later than others of its time. Readers of files order by time; readers of streams
//! see a begin with an earlier time than what was there before.

pub(super) mod arguments;
mod ended_threads;
pub(super) mod entry;
pub(super) mod filters;
mod key;
mod marks;
pub(super) mod plan_spans;
pub(super) mod planner;
mod program;
pub(super) mod role;
pub(super) mod span_map;
mod total;
