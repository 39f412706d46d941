//! The trace file: a perf.data file of independent compressed chunks that is valid at any time.
//!
//! # The file
//!
//! | | |
//! |---|---|
//! | header, 104 bytes | perf's; writing its data size, at offset 48, commits what was appended |
//! | ids, attrs, feature sections | perf's; the probe definitions follow the string in the `VERSION` section |
//! | zeros to a multiple of 65536 | |
//! | definitions | a second copy, in records of type 65, which perf ignores |
//! | footer | record of type 65: feature table, node of the index |
//! | *a round:* chunks | records of type 81: chunk header in a skippable zstd frame, one zstd frame. Chunks of metadata (all records but samples) come first |
//! | end of the round | record of type 68 |
//! | footer | the data end 8 bytes after its start, where perf reads the feature table |
//! | *more rounds* | |
//! | added events | at the start of a round, ids, attrs and changed feature sections, definitions, in records of type 65, and a footer; where these heads would be long, only what is new |
//! | control groups | in chunks of metadata, of each process after its first hit, records of type 65 |
//! | shortfalls | in chunks of metadata, what the recorder found not to work, records of type 65 |
//! | pauses | in chunks of metadata, times in which probes were detached to keep to their budget, records of type 65 |
//! | digests | after about a hundred rounds, a copy of their metadata in a record of type 65 |
//! | clock readings | in a round after each reading of the clocks, records of type 65 |
//! | losses | records of type 13, plain |
//! | feature table, last node of the index | after the end of the data, when the recorder has ended normally |
//! | names of functions in stacks | appended when they are found; the file is complete without them |
//!
//! A flush appends a round and a footer, and then moves the end of the data by one write of 8 bytes. So the file always contains all rounds
//! whose flush returned, for usdtrec and for stock perf (6.1 and later); the remains of a killed flush after the footer are ignored. This
//! holds if the process is killed. If the machine fails, data that the kernel has not written back are lost.
//!
//! Events that are added while recording, because a library or a program appears, are in the data. Then the one write is that of the header's
//! fields from offset 24 on: attrs, data and features change together, so that a file has all of an addition or nothing of it.
//!
//! Without compression, and if they do not compress, records are stored in the round as plain records.
//!
//! Numbers are little-endian. Chunks, footers and index are distinguished from perf's records by magic bytes, and have a version, a CRC and,
//! where they can grow in later versions, a length.
//!
//! # Reading
//!
//! [`Trace::open`] reads the head and finds the [`Block`]s, from the index, or by scanning the record headers of files without an index
//! (files of stock perf, and files that were cut). [`BlockReader`] reads the records of a block. Blocks are independent, except for those
//! of `perf record -z`.
//!
//! No length or count in a file is trusted: memory is bounded by the longest block, and work by the length of the file. What readers limit, writers
//! refuse ([`Limit`]).
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
//! writer.flush()?; // from here on the record is in the file, even if the process is killed
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

mod added_events;
mod added_piece;
mod append;
mod block;
mod block_reader;
mod buffer;
mod chunk;
mod clock_readings;
mod code_names;
mod codec;
mod damage;
mod definitions_record;
mod digest;
mod directory;
mod features;
mod file_head;
mod fired_trigger;
mod footer;
mod head;
mod head_sums;
mod id_map;
mod index;
mod index_reader;
mod info;
mod ingest;
mod joined;
mod joined_heads;
mod joined_names;
mod known_events;
mod limits;
mod loss_counts;
mod new_events;
mod opening;
mod own_record;
mod pack_pool;
mod packed_records;
mod packer;
mod part;
mod part_queue;
mod pause;
mod pipe;
mod pipe_reader;
mod pipe_writer;
mod plain;
mod process_cgroup;
mod read_error;
mod reader;
mod record_counts;
mod scan;
mod section_records;
mod shared_heads;
mod shortfall;
mod sink;
mod stream;
mod string_argument;
mod time_range;
mod trace_files;
mod trace_part;
mod window;
mod write_error;
mod writer;

pub use append::{AppendError, append_code_names};
pub use block::{Block, BlockKind};
pub use block_reader::BlockReader;
pub use clock_readings::{ClockReading, WallQuality};
pub use codec::{CodecError, Compression, IoCause};
pub use damage::{
    AddedEventsFault, ChunkDamage, Damage, DamageKind, NoRecord, StreamError, WholeBefore,
};
pub use definitions_record::DefinitionsError;
pub use digest::Digest;
pub use fired_trigger::{FiredTrigger, TriggerKind};
pub use info::{Clock, Loss, TraceInfo};
pub use joined::{JoinError, NamedTrace};
pub use limits::{HeadSize, Limit, LimitExceeded};
pub use new_events::NewEvents;
pub use own_record::put_time_mark;
pub use packed_records::{PackedPart, PackedReader, PackedRecords, RecordPacker};
pub use pause::{MAX_PAUSED_IDS, Pause};
pub use pipe_reader::PipeReader;
pub use pipe_writer::PipeWriter;
pub use plain::{PlainHead, PlainWriter};
pub use process_cgroup::ProcessCgroup;
pub use read_error::ReadError;
pub use reader::Trace;
pub use record_counts::Totals;
pub use shared_heads::SharedHeads;
pub use shortfall::{Shortfall, ShortfallKind};
pub use sink::Storage;
pub use string_argument::StringArgument;
pub use time_range::TimeRange;
pub use trace_part::{PartBegin, ProbeDifference, TracePart};
pub use write_error::{EventFault, InvalidRecord, RecordFault, WriteError};
pub use writer::{PackedPiece, TraceWriter};
