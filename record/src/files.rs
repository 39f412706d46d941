//! The files of a recording: one, or one after another, each a trace complete in itself.

use std::fmt;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use usdtrec_format::trace::{Compression, Loss, Totals, TraceInfo, WriteError};

use crate::RecordError;
use crate::writer::Writer;

/// Bytes of records that are worth a flush.
const FLUSH_BYTES: usize = 1 << 20;

/// Where the traces go.
pub struct Destination(Place);

enum Place {
    /// Gives a new, empty file for each.
    Files(Box<dyn FnMut() -> io::Result<File> + Send>),
    /// Takes one.
    Pipe(Option<File>),
}

impl Destination {
    /// A destination that makes its files with `next`.
    pub fn new(next: impl FnMut() -> io::Result<File> + Send + 'static) -> Self {
        Self(Place::Files(Box::new(next)))
    }

    /// A pipe, or anything else that is written front to back.
    #[must_use]
    pub fn pipe(pipe: File) -> Self {
        Self(Place::Pipe(Some(pipe)))
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Destination")
    }
}

/// When to go on with a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// When SIGUSR2 arrives.
    Signal,
    /// When a file has this many bytes; it may exceed them by what the rings hold.
    Size(u64),
    /// After this time.
    Time(Duration),
}

/// The file being written, and those before it.
#[derive(Debug)]
pub(crate) struct Files {
    info: TraceInfo,
    compression: Compression,
    destination: Destination,
    writer: Writer,
    opened: Instant,
    flushed: Instant,
    /// Sum of the files that are finished.
    finished: Totals,
    /// What kept records from being written as they were taken.
    failed: Option<WriteError>,
}

impl Files {
    /// Begins the first file.
    pub(crate) fn create(
        info: TraceInfo,
        compression: Compression,
        mut destination: Destination,
    ) -> Result<Self, RecordError> {
        let writer = begin(&info, compression, &mut destination)?;
        let now = Instant::now();
        Ok(Self {
            info,
            compression,
            destination,
            writer,
            opened: now,
            flushed: now,
            finished: Totals::default(),
            failed: None,
        })
    }

    /// Takes whole records. If they are many, what was taken is written; if that fails, the next flush tells.
    pub(crate) fn push(&mut self, records: &[u8]) {
        self.writer.push(records);
        if self.writer.pending() >= FLUSH_BYTES && self.failed.is_none() {
            self.failed = self.writer.flush_part().err();
        }
    }

    /// Writes what was taken, if it is much or has waited long. To be called between passes over all rings.
    pub(crate) fn flush_if_due(&mut self) -> Result<(), RecordError> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let pending = self.writer.pending();
        let waited = || self.flushed.elapsed() >= self.writer.flush_time();
        if pending >= FLUSH_BYTES || self.writer.wants_flush() && waited() {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what was taken.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        self.writer.flush()?;
        self.flushed = Instant::now();
        Ok(())
    }

    /// Whether it is time for the next file.
    pub(crate) fn is_due(&self, switch: Switch) -> bool {
        match switch {
            Switch::Signal => false,
            Switch::Size(bytes) => self.writer.totals().file_bytes >= bytes,
            Switch::Time(time) => self.opened.elapsed() >= time,
        }
    }

    /// Ends the file with the losses that fell into its time, and begins the next.
    pub(crate) fn switch(&mut self, losses: &[Loss]) -> Result<(), RecordError> {
        let next = begin(&self.info, self.compression, &mut self.destination)?;
        let totals = std::mem::replace(&mut self.writer, next).finish(losses)?;
        self.finished = sum(self.finished, totals);
        self.opened = Instant::now();
        Ok(())
    }

    /// Totals of all files so far.
    pub(crate) fn totals(&self) -> Totals {
        sum(self.finished, self.writer.totals())
    }

    /// Ends the last file.
    pub(crate) fn finish(self, losses: &[Loss]) -> Result<Totals, RecordError> {
        Ok(sum(self.finished, self.writer.finish(losses)?))
    }
}

fn begin(
    info: &TraceInfo,
    compression: Compression,
    destination: &mut Destination,
) -> Result<Writer, RecordError> {
    match &mut destination.0 {
        Place::Files(next) => {
            let file = next().map_err(RecordError::Output)?;
            Ok(Writer::file(file, info, compression)?)
        }
        Place::Pipe(pipe) => {
            let taken = || io::Error::other("a pipe takes only one trace");
            let pipe = pipe.take().ok_or_else(taken).map_err(RecordError::Output)?;
            Ok(Writer::pipe(pipe, info, compression)?)
        }
    }
}

fn sum(a: Totals, b: Totals) -> Totals {
    Totals {
        samples: a.samples + b.samples,
        raw_bytes: a.raw_bytes + b.raw_bytes,
        file_bytes: a.file_bytes + b.file_bytes,
    }
}
