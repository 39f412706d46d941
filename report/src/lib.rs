//! Views of traces.
//!
//! A [`Session`] opens a trace. From it [`script`](script::script) prints samples in the order of time and
//! [`report`](report::report) sums them up; both decode blocks of the trace in parallel and in bounded memory.
//! [`Format`](script::Format) has the fields of their JSON and CSV.

pub mod diff;
mod error;
mod fold;
mod live;
mod notice;
mod order;
mod pool;
pub mod process;
pub mod report;
pub mod script;
mod select;
mod session;
mod silent;
mod sketch;
mod span;
pub mod symbols;
mod text;

pub use error::ReportError;
pub use live::Streamed;
pub use notice::Notices;
pub use select::{CpuSet, Selection, TimeSpan};
pub use session::{Event, Events, Session, Site, Sources};
pub use silent::reasons;
