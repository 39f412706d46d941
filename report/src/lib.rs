//! Answers to questions about usdtrec's and perf's traces, and their views.
//!
//! A [`TraceSession`] opens a trace, a [`EventSelection`] says which of its events are requested. [`script::print`] prints them in the order of
//! time, [`AnswerQuestions::answer`] answers a [`Question`](question::Question) about them with [`Facts`](answer::Facts), which [`report::write`] shows as text,
//! JSON and CSV.
//! [`diff::print`] compares two traces. All decode blocks of the trace in parallel and in bounded memory. [`Format`] has the fields of their JSON and CSV.
//!
//! [`rows`] has the events and spans one by one, with typed values, for programs that use this crate, and with feature `arrow` module `arrow` has them as
//! record batches. [`export::write`] writes its events and spans for other programs. [`script::print_stream`] and [`top::show`] do it with a stream while it is written.
//!
//! A percentile of the spans of each group:
//!
//! ```
//! use std::path::Path;
//!
//! use usdtrec_report::answer::Facts;
//! use usdtrec_report::question::{Question, SpanQuestion};
//! use usdtrec_report::{AnswerQuestions, EventSelection, HintWords, Sentences, Sources, TraceSession};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = TraceSession::open(Path::new("../testdata/demo.data"), &Sources::default())?;
//! let question = Question::Spans(SpanQuestion {
//!     spans: vec!["request".to_owned()],
//!     by: vec!["request__done.arg2".to_owned()],
//!     ..SpanQuestion::default()
//! });
//! let answer = session.answer(&EventSelection::default(), &question)?;
//! assert!(answer.notices.sentences(HintWords::default()).is_empty());
//! if let Facts::Spans(report) = answer.facts {
//!     for group in &report.groups[0] {
//!         println!("{:?}: {} ns", group.values, group.durations.p99);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This crate has the interface of its layers, each of which uses only those before it in this table:
//!
//! | crate | what is in it |
//! |---|---|
//! | `usdtrec-trace` | an open trace: its events and sites, processes, symbols; the events that are selected, in the order of time, in any order, or while they are written |
//! | `usdtrec-analysis` | answers, as plain data, and statistics in bounded memory |
//! | `usdtrec-view` | answers and events as text, JSON and CSV |
//! | `usdtrec-export` | events, spans and stacks for other programs |
//!
//! The events and spans of a trace one by one:
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use usdtrec_format::Pattern;
//! use usdtrec_report::rows::{LossCounts, RowQuestion, RowReader, RowValue, TraceRow};
//! use usdtrec_report::{EventSelection, HintWords, Sentences, Sources, TraceSession};
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

#![forbid(unsafe_code)]

pub use usdtrec_analysis::answer::{self, AnswerQuestions};
pub use usdtrec_analysis::context_question::ContextQuestion;
pub use usdtrec_analysis::origin::TriggerFacts;
pub use usdtrec_analysis::question;
pub use usdtrec_analysis::stacks::names::{MadeNames, StackNames};
pub use usdtrec_analysis::summary::next_questions::NextQuestion;
pub use usdtrec_export as export;
#[cfg(feature = "arrow")]
pub use usdtrec_export::arrow;
pub use usdtrec_export::rows;
pub use usdtrec_format::trace::TimeRange;
pub use usdtrec_trace::error::ReportError;
pub use usdtrec_trace::events::files::CodeFile;
pub use usdtrec_trace::events::no_events::NoEventsReason;
pub use usdtrec_trace::events::notices::{EmptyExport, Notices};
pub use usdtrec_trace::events::selection::{CpuSet, CpuSetError, EventSelection};
pub use usdtrec_trace::events::stream::{SpanTotals, StreamSummary};
pub use usdtrec_trace::field_error::FieldError;
pub use usdtrec_trace::question_error::QuestionError;
pub use usdtrec_trace::session::events::{Event, EventSite, Events};
pub use usdtrec_trace::session::joined_files::{JoinedFile, JoinedFiles, PlacedDamage};
pub use usdtrec_trace::session::{Sources, TraceSession};
pub use usdtrec_trace::symbols::FileSymbols;
pub use usdtrec_trace::symbols::image::open_files_by;
pub use usdtrec_trace::symbols::search::{FetchDebug, FileView};
pub use usdtrec_trace::time_of_day::{DaySpan, WrittenTime};
pub use usdtrec_trace::time_span::{TimeSpan, TimeSpanError, TraceTimes};
pub use usdtrec_trace::wall_times::WallTimes;
pub use usdtrec_trace::{fields, process, symbols};
pub use usdtrec_view::columns::fold;
#[cfg(feature = "flame")]
pub use usdtrec_view::flame;
#[doc = include_str!("../FIELDS.md")]
#[doc(inline)]
pub use usdtrec_view::format::Format;
pub use usdtrec_view::hints::{Hint, HintWords};
pub use usdtrec_view::sentences::Sentences;
pub use usdtrec_view::{diff, report, script, stat, top, trigger};
