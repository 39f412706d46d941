//! The trace file: a perf.data file whose data are independent compressed chunks, valid at every instant.
//!
//! # The file
//!
//! | | |
//! |---|---|
//! | header, 104 bytes | perf's; its data size, at offset 48, is the one field that makes what was appended count |
//! | ids, attrs, feature sections | perf's; the probe definitions follow the string in the `VERSION` section |
//! | zeros to a multiple of 65536 | |
//! | definitions | once more, in records of type 65, which perf ignores |
//! | footer | record of type 65: feature table, node of the index |
//! | *a round:* chunks | records of type 81: chunk header in a skippable zstd frame, one zstd frame. Those of metadata (all records but samples) come first |
//! | end of the round | record of type 68 |
//! | footer | the data end 8 bytes into it, where perf looks for the feature table |
//! | *more rounds* | |
//! | digests | after some hundred rounds the metadata of these once more, in a record of type 65 |
//! | losses | records of type 13, plain |
//! | feature table, last node of the index | behind the end of the data: the normal end |
//!
//! A flush appends a round and a footer and then moves the end of the data by one write of 8 bytes. So at every instant
//! the file holds all rounds whose flush returned, for us and for stock perf (6.1 and later), and what a kill left behind
//! the footer is ignored. This holds when the process dies; when the machine does, what the kernel had not written is gone.
//!
//! Without compression, and where records do not compress, they stand in the round as they are.
//!
//! Numbers are little-endian. Chunks, footers and index are told apart from perf's by magic bytes, carry a version
//! and a CRC, and give their own length where they may grow.
//!
//! # Reading
//!
//! [`Trace::open`] reads the head and finds the [`Block`]s: from the index, or by walking the record headers where there is
//! none, as in files of stock perf and in files that were cut. [`BlockReader`] gives the records of a block. Blocks do not
//! depend on each other, but for those of `perf record -z`.
//!
//! No length or count in a file is believed: memory is bounded by the longest block, and work by the file's length.
//!
//! # Example
//!
//! ```
//! use usdtrec_format::perf::{Attr, Comm, EventAttr, RecordType, Records, SampleId, SampleType};
//! use usdtrec_format::trace::{BlockReader, Compression, Trace, TraceInfo, TraceWriter};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let attr = Attr {
//!     kind: 8, // the uprobe PMU's number on this machine
//!     sample_type: SampleType::IDENTIFIER
//!         | SampleType::IP
//!         | SampleType::TID
//!         | SampleType::TIME
//!         | SampleType::CPU,
//!     flags: Attr::SAMPLE_ID_ALL,
//!     ..Attr::default()
//! };
//! let id_type = attr.id_type();
//! let info = TraceInfo {
//!     events: vec![EventAttr { attr, name: "sdt_app:start".to_owned(), ids: vec![7] }],
//!     ..TraceInfo::default()
//! };
//!
//! let path = tempfile::NamedTempFile::new()?.into_temp_path();
//! let file = std::fs::File::create(&path)?;
//! let mut writer = TraceWriter::create(file, &info, Compression::Zstd(1))?;
//! let mut records = Vec::new();
//! let comm = Comm { pid: 42, tid: 42, exec: false, name: b"app", id: SampleId::default() };
//! comm.encode(id_type, &mut records);
//! writer.push(&records);
//! writer.flush()?; // from here on the file holds the record, whatever happens
//! writer.finish(&[])?;
//!
//! let trace = Trace::open(&path)?;
//! assert_eq!(trace.info().events[0].name, "sdt_app:start");
//! let mut reader = BlockReader::new();
//! for block in trace.blocks() {
//!     for record in Records::new(reader.read(&trace, block)?) {
//!         assert_eq!(record.kind, RecordType::COMM);
//!         assert_eq!(Comm::parse(&record, id_type).map(|comm| comm.name), Some(b"app".as_slice()));
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod block;
mod block_reader;
mod buffer;
mod carrier;
mod chain;
mod chunk;
mod codec;
mod compression;
mod damage;
mod digest;
mod directory;
mod features;
mod file_head;
mod footer;
mod group_counts;
mod group_read;
mod head;
mod head_sums;
mod index;
mod info;
mod intake;
mod loss_counts;
mod opening;
mod packer;
mod pipe;
mod pipe_reader;
mod pipe_writer;
mod read_error;
mod reader;
mod scan;
mod sink;
mod source;
mod storage;
mod stream;
mod tally;
mod window;
mod write_error;
mod writer;

pub use block::{Block, BlockKind};
pub use block_reader::BlockReader;
pub use compression::Compression;
pub use damage::Damage;
pub use digest::Digest;
pub use info::{Clock, Loss, TraceInfo};
pub use pipe_reader::PipeReader;
pub use pipe_writer::PipeWriter;
pub use read_error::ReadError;
pub use reader::Trace;
pub use storage::Storage;
pub use write_error::WriteError;
pub use writer::{Totals, TraceWriter};
