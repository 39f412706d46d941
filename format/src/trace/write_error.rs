//! Errors of writing a trace.

use super::limits::LimitExceeded;

/// Error of writing a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A system call failed.
    #[error("cannot write at offset {offset}")]
    Io {
        /// File offset of the write.
        offset: u64,
        /// Error of the write.
        #[source]
        source: std::io::Error,
    },
    /// Flushing the file to disk failed.
    #[error("cannot flush the trace to disk")]
    Sync(#[source] std::io::Error),
    /// The trace has no event.
    #[error("expected at least one event")]
    NoEvent,
    /// An attr cannot be written, or is incompatible with the first one.
    #[error("event {event}: {fault}")]
    Event {
        /// Name of the event.
        event: String,
        /// The error in its attr.
        fault: EventFault,
    },
    /// Readers would ignore something, because there is too much of it.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The probe definitions cannot be encoded.
    #[error("cannot write the probe definitions")]
    Definitions(#[source] std::io::Error),
    /// Creating a zstd compressor failed.
    #[error("cannot set up compression")]
    Compressor(#[source] std::io::Error),
    /// Pushed bytes were not whole records. All other records are in the file.
    #[error("bytes not written, because they are not whole records: {0}")]
    Record(InvalidRecord),
}

/// Why an event cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventFault {
    /// `sample_type` lacks fields that the reader relies on.
    #[error("sample_type {found:#x} lacks some of {needed:#x} (IDENTIFIER, IP, TID, TIME, CPU)")]
    SampleType {
        /// The event's `sample_type`.
        found: u64,
        /// The needed bits.
        needed: u64,
    },
    /// `sample_id_all` is not set.
    #[error("sample_id_all is not set")]
    NoSampleId,
    /// The layout of sample ids or of counter values differs from that of the first event.
    #[error(
        "the sample id {id_type:#x} and read_format {read_format:#x} differ from {first_id_type:#x} and {first_read_format:#x} of {first}"
    )]
    Different {
        /// The event's `sample_type`, as far as it is in sample ids.
        id_type: u64,
        /// The event's `read_format`.
        read_format: u64,
        /// Name of the first event.
        first: String,
        /// The first event's `sample_type`, as far as it is in sample ids.
        first_id_type: u64,
        /// The first event's `read_format`.
        first_read_format: u64,
    },
    /// The ids do not fit into a record of at most 65535 bytes.
    #[error("its {ids} ids do not fit into a record")]
    TooManyIds {
        /// Number of ids.
        ids: usize,
    },
    /// Its samples have registers of the interrupt, and events were added.
    #[error("events cannot be added where samples have registers of the interrupt")]
    InterruptRegisters,
    /// Another event has one of the ids.
    #[error("another event has the sample id {id}")]
    TakenId {
        /// The sample id.
        id: u64,
    },
}

/// An invalid record among pushed bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record at byte {offset} of {len}: {fault}")]
pub struct InvalidRecord {
    /// Offset of the record in the pushed bytes.
    pub offset: usize,
    /// Number of bytes that were pushed together.
    pub len: usize,
    /// The error in the record.
    pub fault: RecordFault,
}

/// Why a record is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The size in the record header is no multiple of 8, or the record is longer than the pushed bytes.
    #[error(
        "expected a size that is a multiple of 8 within the bytes, found the header {header:02x?}"
    )]
    Size {
        /// The record header, or what there is of it.
        header: Vec<u8>,
    },
    /// A sample is too short to have a time.
    #[error("a sample of {size} bytes is too short for a time")]
    ShortSample {
        /// Size of the record, bytes.
        size: usize,
    },
}
