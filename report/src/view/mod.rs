//! Answers and events as text, tables, JSON, CSV and lines. A view computes nothing.
//!
//! JSON and CSV are views like text, written by hand: their members are an interface (`report/FIELDS.md`) with rules of
//! its own (integers beyond 64 bits, infinities as texts, `null` against absent, keys of groups as members), and fields
//! of `analysis` can be renamed without changing it. So the answers, which are private to the crate, do not implement
//! `Serialize`. What is wrong with a trace (`Notices`, `NoEventsReason`) becomes sentences here.

pub(crate) mod answer_style;
#[cfg(feature = "arrow")]
pub mod arrow;
pub(crate) mod bars;
pub(crate) mod call_words;
pub(crate) mod cells;
pub(crate) mod columns;
pub mod diff;
pub mod export;
#[cfg(feature = "flame")]
pub mod flame;
pub(crate) mod folded;
pub(crate) mod format;
pub(crate) mod frames;
pub(crate) mod head;
pub(crate) mod hints;
pub(crate) mod json_arguments;
pub(crate) mod losses;
pub(crate) mod measured;
pub(crate) mod no_events;
pub(crate) mod notices;
pub(crate) mod numbers;
pub mod report;
pub mod rows;
pub mod script;
pub(crate) mod stack_cut;
pub(crate) mod text;
pub(crate) mod theme;
pub mod top;
pub(crate) mod weights;
pub(crate) mod without_stack;
