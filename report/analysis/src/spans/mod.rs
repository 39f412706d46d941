//! Spans: from the hit of one probe to that of another, as from `query__start` to `query__done`.
//!
//! A hit that begins a span waits, under its key (its thread, its process, or the values of arguments), for the hit that ends it. Under one key
//! they nest as calls do: an end belongs to the newest begin with which its arguments agree, and what began later is unfinished.
//! Where an integer behaves as an id in the whole trace (`common_integers`), it must agree, too; and if spans cross by it, as those of an event loop
//! do, each of them has a key of its own: thread and id.
//! What belongs to one key must be seen in the order of time, other things need not: so each window of samples matches its own spans in
//! parallel, and only what stays open in it, or may end what began before it, is matched across windows, one after the other.
//!
//! What began later than the begin of an end left by `longjmp`, an exception, or an end that the runtime does not
//! report. The key is the thread, but for well-known probes of which one thread has several spans at once ([`usdtrec_format::spans`]).
//! Where the probes were detached for a time, nothing is matched across it: what was open then, and what ends after it without a begin, is counted
//! apart ([`pair_pauses`]).
//! A lost hit lets a begin match a later end; no reader can know which, so losses are shown wherever spans are.

pub(crate) mod agreement;
pub mod ambiguity;
pub(crate) mod asked_keys;
pub(crate) mod better_key;
pub(crate) mod children;
pub(crate) mod common_integers;
pub(crate) mod counting;
pub mod covers;
pub(crate) mod durations;
pub mod ends;
pub(crate) mod id_evidence;
pub(crate) mod key;
pub(crate) mod marks;
pub mod matcher;
pub(crate) mod nesting;
pub(crate) mod options;
pub(crate) mod own_keys;
pub mod pair;
pub mod pair_pauses;
pub(crate) mod plain_hits;
pub(crate) mod role;
pub mod slowest;
pub mod spent_time;
pub(crate) mod stack;
pub(crate) mod stream_pairs;
pub(crate) mod unmatched_times;
pub mod waits;
pub(crate) mod walk;
pub(crate) mod with_samples;
