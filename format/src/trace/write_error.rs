//! Why a trace cannot be written.

/// Why writing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A system call failed.
    #[error("cannot write at offset {offset}")]
    Io {
        /// File offset of the write.
        offset: u64,
        /// Its error.
        #[source]
        source: std::io::Error,
    },
    /// The system could not bring what was written to the disk.
    #[error("cannot bring the trace to the disk")]
    Sync(#[source] std::io::Error),
    /// The attrs differ in what every record must share.
    #[error("{0}")]
    Layout(String),
    /// The probe definitions have no form in the file, as with a path that is no UTF-8.
    #[error("cannot write the probe definitions")]
    Definitions(#[source] std::io::Error),
    /// zstd could not be set up.
    #[error("cannot set up compression")]
    Compressor(#[source] std::io::Error),
    /// Bytes were pushed that are no records. All others are in the file.
    #[error("not written, because they are no whole records: {0}")]
    Record(String),
}
