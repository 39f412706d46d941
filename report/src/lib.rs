//! Decoder and views of traces.

pub mod decode;
mod error;
mod order;
pub mod process;
mod select;
mod session;
pub mod symbols;
mod text;

pub use error::ReportError;
pub use select::{CpuSet, Selection, TimeSpan};
pub use session::{Event, Events, Session, Site};
