//! The events and spans of a trace one by one, with typed values: the interface for programs that use this crate.
//!
//! A [`RowReader`] hands [`TraceRow`]s to a function, in the order of time: a [`RowEvent`] for each selected hit, and a [`RowSpan`] for each span
//! when it ends. They are the rows from which exports are written, so that values, stacks and spans are those of `script`, `report` and `export`.
//! The function ends the walk when it wants. Blocks are decoded in parallel; in memory are the blocks that are decoded at once, and the begins of
//! open spans.
//!
//! [`LossCounts`] are the events that the recorder lost, and [`Notices`](crate::Notices) what is wrong with the file: rows alone do not show either.
//!
//! A reader decodes nothing itself, so rows cannot differ from exports. It takes a function and is not an iterator,
//! because windows are decoded in parallel and dropped when their rows were handed over: an iterator would have to copy
//! every row.
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use usdtrec_format::Pattern;
//! use usdtrec_report::rows::{LossCounts, RowQuestion, RowReader, RowValue, TraceRow};
//! use usdtrec_report::{EventSelection, HintWords, Sources, TraceSession};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = TraceSession::open(Path::new("../testdata/demo.data"), &Sources::default())?;
//! let selection = EventSelection {
//!     events: vec![Pattern::parse("usdtrec:request__*")?],
//!     time: Some("0%-50%".parse()?),
//!     ..EventSelection::default()
//! };
//! let reader = RowReader::new(&session, &selection, &RowQuestion::default())?;
//! let (mut failed, mut longest) = (0, 0);
//! let notices = reader.read(|row| {
//!     match row {
//!         TraceRow::Event(event) => {
//!             let status = event.argument("arg2").map(|status| status.value());
//!             if let Some(RowValue::Signed(500..)) = status {
//!                 failed += 1;
//!             }
//!         }
//!         TraceRow::Span(span) => longest = longest.max(span.duration_ns().unwrap_or(0)),
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! assert!(failed > 0 && longest > 1_000_000);
//! assert!(notices.sentences(HintWords::default()).is_empty());
//! assert_eq!(LossCounts::new(&session).lost(), Some(0));
//! # Ok(())
//! # }
//! ```

pub(crate) mod loss_counts;
pub(crate) mod row_argument;
pub(crate) mod row_event;
pub(crate) mod row_reader;
pub(crate) mod row_site;
pub(crate) mod row_span;
pub(crate) mod row_stack;
pub(crate) mod row_value;

pub use crate::analysis::losses::LossSource;
pub use crate::analysis::rows::row_sink::SpanFate;
pub use crate::analysis::rows::row_walk::RowQuestion;
pub use crate::stats::keys::stack::FrameName;
pub use crate::view::rows::loss_counts::{LossCounts, ProbeLosses};
pub use crate::view::rows::row_argument::RowArgument;
pub use crate::view::rows::row_event::RowEvent;
pub use crate::view::rows::row_reader::{RowReader, TraceRow};
pub use crate::view::rows::row_site::RowSite;
pub use crate::view::rows::row_span::RowSpan;
pub use crate::view::rows::row_stack::RowStack;
pub use crate::view::rows::row_value::{RowText, RowValue};
