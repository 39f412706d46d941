//! What a trace is written with: into a file, or into a pipe.

use std::fs::File;
use std::time::Duration;

use usdtrec_format::trace::{
    Compression, Loss, PipeWriter, Totals, TraceInfo, TraceWriter, WriteError,
};

/// A trace being written.
#[derive(Debug)]
pub(crate) enum Writer {
    /// The second is another handle of the file, if the system gave one.
    File(Box<TraceWriter>, Option<File>),
    Pipe(Box<PipeWriter<File>>),
}

impl Writer {
    /// Begins a trace in an empty file.
    pub(crate) fn file(
        file: File,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let handle = file.try_clone().ok();
        Ok(Self::File(
            Box::new(TraceWriter::create(file, info, compression)?),
            handle,
        ))
    }

    /// Begins a trace in a pipe.
    pub(crate) fn pipe(
        pipe: File,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let writer = PipeWriter::create(pipe, info, compression)?;
        Ok(Self::Pipe(Box::new(writer)))
    }

    /// Longest time that a record waits for its flush: what a crash of the recorder can cost, and how long whoever reads
    /// a pipe waits.
    pub(crate) const fn flush_time(&self) -> Duration {
        match self {
            Self::File(..) => Duration::from_secs(1),
            Self::Pipe(_) => Duration::from_millis(200),
        }
    }

    /// Whether a flush is of use, now or later.
    pub(crate) fn wants_flush(&self) -> bool {
        match self {
            Self::File(writer, _) => writer.pending() > 0,
            Self::Pipe(writer) => writer.pending() > 0 || writer.is_unsettled(),
        }
    }

    pub(crate) fn push(&mut self, records: &[u8]) {
        match self {
            Self::File(writer, _) => writer.push(records),
            Self::Pipe(writer) => writer.push(records),
        }
    }

    pub(crate) fn pending(&self) -> usize {
        match self {
            Self::File(writer, _) => writer.pending(),
            Self::Pipe(writer) => writer.pending(),
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        match self {
            Self::File(writer, _) => writer.totals(),
            Self::Pipe(writer) => writer.totals(),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.flush(),
            Self::Pipe(writer) => writer.flush(),
        }
    }

    /// Writes what was taken within a pass over all rings. In a pipe, whose reader cannot go back, all of a pass stays together.
    pub(crate) fn flush_part(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.flush_part(),
            Self::Pipe(_) => Ok(()),
        }
    }

    /// The handle by which the file can be brought to the disk.
    pub(crate) const fn take_handle(&mut self) -> Option<File> {
        match self {
            Self::File(_, handle) => handle.take(),
            Self::Pipe(_) => None,
        }
    }

    pub(crate) fn finish(self, losses: &[Loss]) -> Result<Totals, WriteError> {
        match self {
            Self::File(writer, _) => writer.finish(losses),
            Self::Pipe(writer) => writer.finish(losses),
        }
    }
}
