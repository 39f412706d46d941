//! The events and spans of a trace one by one, with typed values: the interface for programs that use this crate.
//!
//! A [`RowReader`] hands [`TraceRow`]s to a function, in the order of time: a [`RowEvent`] for each selected hit, and a [`RowSpan`] for each span
//! when it ends. They are the rows from which exports are written, so that values, stacks and spans are those of `script`, `report` and `export`.
//! The function ends the walk when it wants. Blocks are decoded in parallel; in memory are the blocks that are decoded at once, and the begins of
//! open spans.
//!
//! [`LossCounts`] are the events that the recorder lost, and [`Notices`](usdtrec_trace::events::notices::Notices) what is wrong with the file: rows alone do not show either.
//!
//! A reader decodes nothing itself, so rows cannot differ from exports. It takes a function and is not an iterator,
//! because windows are decoded in parallel and dropped when their rows were handed over: an iterator would have to copy
//! every row.

pub(crate) mod loss_counts;
pub(crate) mod row_argument;
pub(crate) mod row_event;
pub(crate) mod row_reader;
pub(crate) mod row_span;
pub(crate) mod row_stack;
pub(crate) mod row_value;

pub use crate::rows::loss_counts::{LossCounts, ProbeLosses};
pub use crate::rows::row_argument::RowArgument;
pub use crate::rows::row_event::RowEvent;
pub use crate::rows::row_reader::{RowReader, TraceRow};
pub use crate::rows::row_span::RowSpan;
pub use crate::rows::row_stack::RowStack;
pub use crate::rows::row_value::{RowString, RowValue};
pub use usdtrec_analysis::rows::row_sink::SpanFate;
pub use usdtrec_analysis::rows::row_walk::RowQuestion;
pub use usdtrec_analysis::stats::keys::stack::FrameName;
pub use usdtrec_format::{NoTimeParts, TimePart, TimeParts};
pub use usdtrec_trace::process::process_field::ProcessValue;
pub use usdtrec_trace::session::loss_ledger::LossSource;
