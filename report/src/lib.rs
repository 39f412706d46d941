//! Answers to questions about usdtrec's and perf's traces, and their views.
//!
//! A [`TraceSession`] opens a trace, a [`EventSelection`] says which of its events are requested. [`script::print`] prints them in the order of
//! time, [`report::print`] answers a [`Question`](question::Question) about them, [`diff::print`] compares two traces. All decode blocks
//! of the trace in parallel and in bounded memory. [`Format`] has the fields of their JSON and CSV.
//!
//! [`rows`] has the events and spans one by one, with typed values, for programs that use this crate, and with feature `arrow` module `arrow` has them as
//! record batches. [`export::write`] writes its events and spans for other programs. [`script::print_stream`] and [`top::show`] do it with a stream while it is written.
//!
//! Each module uses only those before it in this table:
//!
//! | module | what is in it |
//! |---|---|
//! | `trace` | an open trace: its events and sites, processes, symbols |
//! | `events` | the events that are selected: selection, the order of time, windows in parallel, streams |
//! | `stats` | statistics in bounded memory |
//! | `analysis` | answers, as plain data |
//! | `view` | answers and events as text, JSON and CSV |

#![forbid(unsafe_code)]

mod analysis;
mod error;
mod events;
mod field_error;
mod list;
mod pool;
mod question_error;
mod stats;
mod trace;
mod view;

pub use analysis::question;
pub use analysis::stacks::names::{MadeNames, StackNames};
pub use analysis::summary::next::NextQuestion;
pub use error::ReportError;
pub use events::no_events::NoEventsReason;
pub use events::notices::{CounterGap, EmptyExport, Notices};
pub use events::selection::EventSelection;
pub use events::selection::cpus::{CpuSet, CpuSetError};
pub use events::stream::StreamSummary;
pub use field_error::FieldError;
pub use question_error::QuestionError;
pub use trace::session::events::{Event, EventSite, Events};
pub use trace::session::{Sources, TraceSession};
pub use trace::symbols::code_file::CodeFile;
pub use trace::symbols::fetch::FetchDebug;
pub use trace::symbols::of_file::FileSymbols;
pub use trace::symbols::search::FileView;
pub use trace::time_span::{TimeSpan, TimeSpanError};
pub use trace::{process, symbols};
pub use usdtrec_format::trace::TimeRange;
#[cfg(feature = "arrow")]
pub use view::arrow;
#[cfg(feature = "flame")]
pub use view::flame;
pub use view::format::Format;
pub use view::hints::{Hint, HintWords};
pub use view::{diff, export, report, rows, script, top};
