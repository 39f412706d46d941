//! Answers and events as text, tables, JSON, CSV and lines. A view computes nothing.

pub(crate) mod answer_style;
pub(crate) mod bars;
pub(crate) mod call_words;
pub(crate) mod cells;
pub(crate) mod columns;
pub mod diff;
#[cfg(feature = "flame")]
pub mod flame;
pub(crate) mod folded;
pub(crate) mod format;
pub(crate) mod frames;
pub(crate) mod head;
pub(crate) mod hints;
pub(crate) mod losses;
pub(crate) mod measured;
pub(crate) mod no_events;
pub(crate) mod notices;
pub(crate) mod numbers;
pub mod report;
pub mod script;
pub(crate) mod stack_cut;
pub(crate) mod text;
pub(crate) mod theme;
pub mod top;
pub(crate) mod weights;
