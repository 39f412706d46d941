//! Views of traces.
//!
//! A [`Session`] opens a trace. From it [`script`](script::script) prints samples in the order of time and
//! [`report`](report::report) sums them up; both decode blocks of the trace in parallel and in bounded memory.
//! [`Format`](script::Format) has the fields of their JSON and CSV.

mod analysis;
mod error;
mod events;
mod list;
mod pool;
mod stats;
mod trace;
mod view;

pub use analysis::diff;
pub use analysis::silence::reasons;
pub use error::ReportError;
pub use events::notices::Notices;
pub use events::selection::Selection;
pub use events::selection::cpus::CpuSet;
pub use events::stream::Streamed;
pub use trace::session::events::{Event, Events, Site};
pub use trace::session::{Session, Sources};
pub use trace::time_span::TimeSpan;
pub use trace::{process, symbols};
pub use view::{report, script};
