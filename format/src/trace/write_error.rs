//! Errors of writing a trace.

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
    /// The attrs are incompatible with each other.
    #[error("{0}")]
    Layout(String),
    /// The probe definitions cannot be encoded.
    #[error("cannot write the probe definitions")]
    Definitions(#[source] std::io::Error),
    /// Creating a zstd compressor failed.
    #[error("cannot set up compression")]
    Compressor(#[source] std::io::Error),
    /// Pushed bytes were not whole records. All other records are in the file.
    #[error("bytes not written, because they are not whole records: {0}")]
    Record(String),
}
