//! Answers and events as text, tables, JSON, CSV and lines. A view computes nothing.
//!
//! `report/FIELDS.md` has the members and columns of JSON and CSV. What is wrong with a trace (`Notices`, `NoEventsReason`) becomes sentences here.

#![forbid(unsafe_code)]

pub(crate) mod answer_style;
pub mod bars;
pub mod cells;
pub mod columns;
pub mod cut_apart;
pub mod diff;
pub(crate) mod fit;
#[cfg(feature = "flame")]
pub mod flame;
pub mod folded;
pub mod format;
pub mod frames;
pub mod head;
pub mod hints;
pub(crate) mod joined_files;
pub(crate) mod json_arguments;
pub mod losses;
pub(crate) mod no_events;
pub(crate) mod notices;
pub mod numbers;
pub mod report;
pub mod script;
pub mod sentences;
pub mod stack_cut;
pub mod stack_remarks;
pub mod stat;
pub mod subject_names;
pub mod table;
pub mod text;
pub(crate) mod theme;
pub mod top;
pub mod trigger;
pub mod weights;
