//! The trace file: a perf.data file whose data are independent compressed chunks, valid at every instant.

mod info;
mod reader;
mod writer;

pub use info::{Clock, Loss, TraceInfo};
pub use reader::{Block, BlockReader, Damage, ReadError, Trace};
pub use writer::{Compression, Totals, TraceWriter, WriteError};
