//! Answers to questions about usdtrec's and perf's traces, and their views.
//!
//! A [`Session`] opens a trace, a [`Selection`] says which of its events are asked for. [`script`](script::script) prints them in the order of
//! time, [`report`](report::report) answers a [`Question`](report::Question) about them, [`diff`](diff::diff) compares two traces. All decode blocks
//! of the trace in parallel and in bounded memory. [`Format`](script::Format) has the fields of their JSON and CSV.
//!
//! Each module uses only those before it in this table:
//!
//! | module | what is in it |
//! |---|---|
//! | `trace` | an open trace: its events and sites, processes, symbols |
//! | `events` | the events that are asked for: selection, the order of time, windows in parallel, streams |
//! | `stats` | statistics in bounded memory |
//! | `analysis` | answers, as plain data |
//! | `view` | answers and events as text, JSON and CSV |

mod analysis;
mod error;
mod events;
mod list;
mod pool;
mod stats;
mod trace;
mod view;

pub use error::ReportError;
pub use events::notices::Notices;
pub use events::selection::Selection;
pub use events::selection::cpus::CpuSet;
pub use events::stream::Streamed;
pub use trace::session::events::{Event, Events, Site};
pub use trace::session::{Session, Sources};
pub use trace::time_span::TimeSpan;
pub use trace::{process, symbols};
pub use view::silence::reasons;
pub use view::{diff, report, script};
