//! The trace file: a perf.data file whose data are independent compressed chunks, valid at every instant.

mod buffer;
mod carrier;
mod chunk;
mod footer;
mod head;
mod index;
mod info;
mod intake;
mod packer;
mod reader;
mod sink;
mod storage;
mod tally;
mod writer;

pub use info::{Clock, Loss, TraceInfo};
pub use reader::{Block, BlockReader, Damage, ReadError, Trace};
pub use storage::Storage;
pub use writer::{Compression, Totals, TraceWriter, WriteError};
