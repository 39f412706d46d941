//! The trace file: a perf.data file whose data are independent compressed chunks, valid at every instant.

mod block;
mod block_reader;
mod buffer;
mod carrier;
mod chain;
mod chunk;
mod damage;
mod decompressor;
mod features;
mod file_head;
mod footer;
mod head;
mod index;
mod info;
mod intake;
mod opening;
mod packer;
mod pipe;
mod reader;
mod scan;
mod sink;
mod source;
mod storage;
mod stream;
mod tally;
mod window;
mod writer;

pub use block::{Block, BlockKind};
pub use block_reader::BlockReader;
pub use damage::Damage;
pub use info::{Clock, Loss, TraceInfo};
pub use reader::{ReadError, Trace};
pub use storage::Storage;
pub use writer::{Compression, Totals, TraceWriter, WriteError};
