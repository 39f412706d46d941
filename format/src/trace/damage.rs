//! Damage in a trace: what it is, and what is lost.

use std::fmt;

use thiserror::Error;

use super::codec::{CodecError, IoCause};
use super::definitions_record::DefinitionsError;
use super::limits::LimitExceeded;
use crate::perf::feature::Feature;

/// What is damaged, and what is lost by it. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file header differs from its copy in the index.
    #[error("the file header is damaged: its copy in the index is used")]
    Header,
    /// The header has more attrs than the file.
    #[error("the header claims {claimed} attrs, found {found}")]
    Attrs {
        /// Number of attrs by the header.
        claimed: u64,
        /// Number of attrs in the file.
        found: u64,
    },
    /// The ids of an attr are not read.
    #[error(
        "{size} bytes of ids at offset {offset} {}: ignored",
        if *.is_beyond_end { "extend beyond the end of the file" } else { "exceed the limit for all attrs" }
    )]
    Ids {
        /// Size of the ids.
        size: u64,
        /// File offset of the ids.
        offset: u64,
        /// Whether they extend beyond the end of the file. Otherwise there are too many of them.
        is_beyond_end: bool,
    },
    /// The attrs or their ids differ from their checksum.
    #[error(
        "the attrs or their ids are damaged: {}",
        if *.is_repeated { "EVENT_DESC, which repeats them, is used" } else { "events may be missing or wrong" }
    )]
    AttrSum {
        /// Whether the feature `EVENT_DESC` is used instead.
        is_repeated: bool,
    },
    /// The file is one of a directory of `perf record --threads`.
    #[error(
        "this file is part of a perf record --threads directory: open the directory to read the samples of all its files data.N"
    )]
    PartOfDirectory,
    /// The feature table cannot be read.
    #[error("the feature table is cut or damaged: host, command and event names are missing")]
    NoFeatures,
    /// The feature table differs from its checksum.
    #[error(
        "the feature table is damaged: {}",
        if *.is_older_used { "an older one is used" } else { "host, command and event names may be missing" }
    )]
    FeatureSum {
        /// Whether a table that was written before is used.
        is_older_used: bool,
    },
    /// A feature's section is too large.
    #[error("feature {feature}: expected at most {most} bytes, found {found}: ignored")]
    FeatureSize {
        /// Number of the feature (`HEADER_*`).
        feature: u32,
        /// Maximum size.
        most: u64,
        /// Its size.
        found: u64,
    },
    /// A feature differs from its checksum.
    #[error(
        "feature {feature} is damaged (its checksum does not match): ignored{}",
        instead_of(*.feature)
    )]
    FeatureSection {
        /// Number of the feature (`HEADER_*`).
        feature: u32,
    },
    /// The feature with this number cannot be parsed.
    #[error("feature {0} is cut or malformed: ignored")]
    FeatureFormat(u32),
    /// The section `TRACING_DATA` cannot be parsed to its end.
    #[error(
        "the formats of tracepoints are cut or malformed: expected {expected}; arguments of {known} tracepoints are known"
    )]
    Tracepoints {
        /// What was expected at the offset.
        expected: &'static str,
        /// Number of tracepoints before it.
        known: usize,
    },
    /// Events that were added in the middle of a stream are not those of a recorder.
    #[error("events that were added while recording are ignored: {0}")]
    AddedEvents(AddedEventsFault),
    /// The definitions of probes cannot be decoded.
    #[error(transparent)]
    Definitions(DefinitionsError),
    /// The index cannot be read, or not to its end.
    #[error("the index is damaged: its contents were found by scanning the records")]
    Index,
    /// The names of functions in stacks cannot be read.
    #[error(
        "the names of functions in stacks are cut or damaged: they are looked up again in the recorded files"
    )]
    CodeNames,
    /// Readings of the clocks are damaged.
    #[error("readings of the clocks are damaged: times of day are those of the other readings")]
    Clocks,
    /// The file ends with a flush that was not committed.
    #[error(
        "ends inside a flush that was not committed (recorder killed, or still writing): {} before it are whole, {rest} bytes are ignored",
        Chunks(*.chunks)
    )]
    Uncommitted {
        /// Number of chunks before the flush.
        chunks: usize,
        /// Size of the flush.
        rest: u64,
    },
    /// The header claims an end of the data where there is no feature table.
    #[error("no feature table at the end of the data of {0} bytes: the data size is ignored")]
    DataSize(u64),
    /// The header has no size of the data: the recorder did not end.
    #[error("the recorder did not end (killed?): host, command and event names were not written")]
    NotEnded,
    /// The file is shorter than its header claims.
    #[error("the data should end at offset {end}, the file has {len} bytes")]
    Short {
        /// File offset of the end of the data by the header.
        end: u64,
        /// Size of the file.
        len: u64,
    },
    /// Bytes between two chunks are not records.
    #[error("{reason}: {lost} bytes are lost")]
    Gap {
        /// What is there instead.
        reason: NoRecord,
        /// Number of bytes up to the next chunk.
        lost: u64,
    },
    /// The file ends inside a record.
    #[error("ends inside a record (recorder killed, or the file cut?): {before}")]
    CutRecord {
        /// What is before it.
        before: WholeBefore,
    },
    /// Bytes up to the end of the data are not records.
    #[error("{reason}: the {lost} bytes from here on are lost, {before}")]
    NoMoreRecords {
        /// What is there instead.
        reason: NoRecord,
        /// Number of bytes up to the end.
        lost: u64,
        /// What is before it.
        before: WholeBefore,
    },
    /// A stream ends inside a record.
    #[error("the stream ends inside a record: {rest} bytes are ignored")]
    CutStream {
        /// Number of bytes of the record.
        rest: usize,
    },
    /// The records of a chunk cannot be read.
    #[error("chunk lost: {0}")]
    Chunk(ChunkDamage),
    /// The compressed stream of `perf record -z` cannot be read from here on.
    #[error(transparent)]
    Stream(StreamError),
    /// The compressed stream cannot be decompressed at all.
    #[error(transparent)]
    Decompressor(CodecError),
    /// The compressed stream has bytes that are not records.
    #[error("the decompressed bytes are not records")]
    NoRecords,
    /// The block is part of a compressed stream that is damaged before.
    #[error("unreadable, because the compressed stream is damaged at offset {0}")]
    AfterBrokenStream(u64),
    /// A block of plain records does not end with a whole record.
    #[error("expected a whole record: the {rest} bytes from here on are lost")]
    PartialRecord {
        /// Number of bytes after the last whole record.
        rest: usize,
    },
    /// The index has a block that is too large.
    #[error("expected a block of at most {most} bytes, found {found}")]
    BlockSize {
        /// Maximum size.
        most: usize,
        /// Size by the index.
        found: u64,
    },
    /// A read failed.
    #[error("cannot read: {0}")]
    Read(IoCause),
    /// The file is shorter than it was.
    #[error("expected {expected} bytes, found {found}: the file was cut")]
    CutBlock {
        /// Size of the block.
        expected: usize,
        /// Number of bytes read.
        found: usize,
    },
    /// Samples read the counts of a group (`PERF_FORMAT_GROUP`, `perf record -e '{a,b}:S'`).
    #[error(
        "samples read the counts of a group of events ('{{a,b}}:S'): only the events of its leader are shown; record the events one by one"
    )]
    GroupReads,
    /// Records are shorter than the fields of their kind.
    #[error("{0} records are shorter than their kind needs and are left out")]
    ShortRecords(u64),
    /// There are more records of processes than a reader keeps.
    #[error(
        "from here on there are more records of processes than fit into memory: names of threads, files and functions may be missing"
    )]
    ProcessRecords,
}

impl DamageKind {
    /// Whether records may be lost.
    #[must_use]
    pub const fn loses_records(&self) -> bool {
        !matches!(
            self,
            Self::Header
                | Self::NoFeatures
                | Self::FeatureSum { .. }
                | Self::FeatureSize { .. }
                | Self::FeatureSection { .. }
                | Self::FeatureFormat(_)
                | Self::Tracepoints { .. }
                | Self::Definitions(_)
                | Self::Index
                | Self::CodeNames
                | Self::Clocks
                | Self::Uncommitted { .. }
                | Self::DataSize(_)
                | Self::ProcessRecords
        )
    }
}

/// Why there is no record at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoRecord {
    /// There are fewer bytes than a header has.
    #[error("a record header is cut")]
    Cut,
    /// The header has a size that no record has.
    #[error("expected a record header, found size {0}")]
    Size(u64),
    /// The record is longer than what is left.
    #[error("a record of {size} bytes extends beyond the end at offset {end}")]
    BeyondEnd {
        /// Its size.
        size: u64,
        /// File offset of the end.
        end: u64,
    },
}

/// What is whole before damage: this number of chunks, or else records that are in no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeBefore {
    /// Number of chunks.
    pub chunks: usize,
}

impl fmt::Display for WholeBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.chunks {
            0 => f.write_str("the records before it are whole"),
            1 => f.write_str("the chunk before it is whole"),
            count => write!(f, "the {count} chunks before it are whole"),
        }
    }
}

/// Why the records of a chunk cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChunkDamage {
    /// Its header is not one of a chunk, or differs from the index.
    #[error("its header is damaged")]
    Header,
    /// Its bytes differ from their checksum.
    #[error("its checksum does not match")]
    Checksum,
    /// It cannot be decompressed.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// A number of chunks in a sentence.
struct Chunks(usize);

impl fmt::Display for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("the chunk"),
            count => write!(f, "the {count} chunks"),
        }
    }
}

/// What is used instead of a damaged feature.
const fn instead_of(feature: u32) -> &'static str {
    match Feature(feature) {
        Feature::EVENT_DESC => "; names of probes are taken from their definitions",
        Feature::VERSION => "; the probe definitions are taken from the data",
        _ => "",
    }
}

/// Why events that were added in the middle of a stream are ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddedEventsFault {
    /// The records are too long.
    #[error("expected at most {max} bytes of attrs, names and definitions")]
    TooLong {
        /// The most, bytes.
        max: usize,
    },
    /// Their definitions are cut or damaged.
    #[error("their definitions are cut or damaged: hits of these events cannot be decoded")]
    Damaged,
    /// There is more than a trace has.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// An attr samples other fields than the recorder of this trace does.
    #[error("an attr samples other fields than the earlier events")]
    Attr,
    /// Another event has one of the sample ids.
    #[error("another event has the sample id {id}")]
    TakenId {
        /// The sample id.
        id: u64,
    },
    /// Definitions of events that the trace has are not repeated.
    #[error("the definitions of earlier events are missing or differ")]
    FormerEvents,
    /// A site has a sample id that is not one of the events that were added.
    #[error("a site has the sample id {id}, which is not one of theirs")]
    ForeignId {
        /// The sample id.
        id: u64,
    },
}

/// Why a compressed stream cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A record is shorter than the piece that it claims to have.
    #[error("the compressed stream breaks here: a piece is cut")]
    Cut,
    /// A piece cannot be decompressed.
    #[error("the compressed stream breaks here: {0}")]
    Codec(#[from] CodecError),
    /// The decompressed bytes are no records.
    #[error("the compressed stream breaks here: the decompressed bytes are not records")]
    NoRecords,
}

/// A damaged part of a trace. The rest of the trace can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// File offset.
    pub offset: u64,
    /// What is damaged, and what is lost.
    pub kind: DamageKind,
}

impl Damage {
    /// Damage at a file offset.
    #[must_use]
    pub const fn new(offset: u64, kind: DamageKind) -> Self {
        Self { offset, kind }
    }

    /// Whether records may be lost. `false`, for example, for an unfinished flush of a killed recorder, before which everything was
    /// committed.
    #[must_use]
    pub const fn loses_records(&self) -> bool {
        self.kind.loses_records()
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for Damage {}
