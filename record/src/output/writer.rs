//! The writer of a trace: to a file, to a pipe, or to a window in memory. A pipe is written without blocking for ever, because its reader may have stopped
//! reading ([`Outlet`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_attach::FileChange;
use usdtrec_format::trace::{
    ClockReading, Compression, Loss, NewEvents, PipeWriter, Totals, TraceInfo, TraceWriter,
    WriteError,
};
use usdtrec_kernel::signals::EndSignal;

use crate::output::watched_file::WatchedFile;
use crate::window::content::WindowContent;
use crate::window::files::WindowLimits;
use crate::window::writer::WindowWriter;

/// A trace being written.
#[derive(Debug)]
pub(super) enum Writer {
    /// A file, and another handle of it, if it is a regular one that could be duplicated.
    File(Box<TraceWriter>, Option<WatchedFile>),
    /// A pipe, its pace, and another handle of it, if it could be duplicated.
    Pipe(Box<PipeWriter<Outlet>>, Pace, Option<OwnedFd>),
    /// A window, of which files are made.
    Window(Box<WindowWriter>),
}

/// The longest time that a record waits for its flush: in a file or a window, in a pipe to an independent reader, and in one to a verb that shows it live.
const FILE_FLUSH_TIME: Duration = Duration::from_secs(1);
const PIPE_FLUSH_TIME: Duration = Duration::from_millis(200);
const LIVE_FLUSH_TIME: Duration = Duration::from_millis(30);

/// How a pipe is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Longest time that a record waits for its flush.
    pub(super) flush_time: Duration,
    /// Whether rounds end at that pace even without records, so that the reader sees time pass.
    pub(super) heartbeat: bool,
}

impl Pace {
    /// For an independent reader.
    pub(super) const INDEPENDENT: Self = Self {
        flush_time: PIPE_FLUSH_TIME,
        heartbeat: false,
    };

    /// For a verb that shows what it reads.
    pub(super) const fn live(heartbeat: bool) -> Self {
        Self {
            flush_time: LIVE_FLUSH_TIME,
            heartbeat,
        }
    }
}

/// Calls a method that all writers have.
macro_rules! of_each {
    ($writer:expr, $($call:tt)+) => {
        match $writer {
            Writer::File(writer, _) => writer.$($call)+,
            Writer::Pipe(writer, ..) => writer.$($call)+,
            Writer::Window(window) => window.$($call)+,
        }
    };
}

impl Writer {
    /// Begins a trace in an empty file.
    pub(super) fn file(
        file: File,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let handle = WatchedFile::new(&file);
        Ok(Self::File(
            Box::new(TraceWriter::create(file, info, compression)?),
            handle,
        ))
    }

    /// Begins a trace in a pipe.
    pub(super) fn pipe(
        pipe: Outlet,
        pace: Pace,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let handle = pipe.as_fd().try_clone_to_owned().ok();
        let writer = PipeWriter::create(pipe, info, compression)?;
        Ok(Self::Pipe(Box::new(writer), pace, handle))
    }

    /// Begins a window.
    pub(super) fn window(
        limits: WindowLimits,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let writer = WindowWriter::new(limits, info, compression)?;
        Ok(Self::Window(Box::new(writer)))
    }

    /// A copy of the window, if it is one, with a reading of the clocks of now.
    pub(super) fn content(&self, now: ClockReading) -> Option<WindowContent> {
        match self {
            Self::Window(window) => Some(window.content(now)),
            Self::File(..) | Self::Pipe(..) => None,
        }
    }

    /// Maximum time until a record is flushed: the records that a crash of the recorder can lose, and the delay for the reader of a pipe.
    pub(super) const fn flush_time(&self) -> Duration {
        match self {
            Self::File(..) | Self::Window(_) => FILE_FLUSH_TIME,
            Self::Pipe(_, pace, _) => pace.flush_time,
        }
    }

    /// Whether a flush is of use, now or later.
    pub(super) fn wants_flush(&self) -> bool {
        match self {
            Self::File(writer, _) => writer.pending() > 0 || writer.has_added_events(),
            Self::Pipe(writer, pace, _) => {
                pace.heartbeat || writer.pending() > 0 || writer.is_unsettled()
            }
            Self::Window(window) => window.pending() > 0,
        }
    }

    /// Sets when recording began and up to which time it has advanced, ns of the trace's clock. A pipe does not store it.
    pub(super) fn set_recorded(&mut self, began: u64, until: u64) {
        match self {
            Self::File(writer, _) => writer.set_recorded(began, until),
            Self::Pipe(..) => {}
            Self::Window(window) => window.set_recorded(began, until),
        }
    }

    /// Says that hits are missing on CPUs that went or came. A pipe has no place for it.
    pub(super) const fn set_cpus_changed(&mut self) {
        match self {
            Self::File(writer, _) => writer.set_cpus_changed(),
            Self::Pipe(..) => {}
            Self::Window(window) => window.set_cpus_changed(),
        }
    }

    /// Allows several threads to compress.
    pub(super) fn set_threads(&mut self, most: NonZeroUsize) {
        match self {
            Self::File(writer, _) => writer.set_threads(most, false),
            Self::Pipe(writer, ..) => writer.set_threads(most, false),
            Self::Window(window) => window.set_threads(most),
        }
    }

    pub(super) fn push(&mut self, records: &[u8]) {
        of_each!(self, push(records))
    }

    pub(super) fn pending(&self) -> usize {
        of_each!(self, pending())
    }

    /// Length of the records that were pushed since the last flush or part, bytes.
    pub(super) fn unflushed(&self) -> usize {
        of_each!(self, unflushed())
    }

    /// Whether parts of a file are still being compressed.
    pub(super) fn has_parts(&self) -> bool {
        match self {
            Self::File(writer, _) => writer.has_parts(),
            Self::Pipe(..) => false,
            Self::Window(window) => window.has_parts(),
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        of_each!(self, totals())
    }

    pub(super) fn flush(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.flush(),
            Self::Pipe(writer, pace, _) if pace.heartbeat => writer.end_round(),
            Self::Pipe(writer, ..) => writer.flush(),
            Self::Window(window) => window.flush(true),
        }
    }

    /// Writes what was taken within a pass over all rings, or begins to compress it. In a pipe, whose reader cannot go back, all of a pass
    /// stays together.
    pub(super) fn flush_part(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.flush_part(),
            Self::Pipe(writer, ..) => {
                writer.compress_part();
                Ok(())
            }
            Self::Window(window) => window.flush(false),
        }
    }

    /// The pipe, which reports when its reader has closed it.
    pub(super) fn written_pipe(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::File(..) | Self::Window(_) => None,
            Self::Pipe(_, _, handle) => handle.as_ref().map(AsFd::as_fd),
        }
    }

    /// Takes losses that have not been reported yet: a pipe has them at once, a file with its next flush. To be called between
    /// flushes.
    pub(super) fn add_losses(&mut self, losses: &[Loss]) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => {
                writer.add_losses(losses);
                Ok(())
            }
            Self::Pipe(writer, ..) => writer.write_losses(losses),
            Self::Window(window) => {
                window.add_losses(losses);
                Ok(())
            }
        }
    }

    /// The events so far, and what describes them.
    pub(super) const fn info(&self) -> &TraceInfo {
        of_each!(self, info())
    }

    /// Adds events: a pipe has them at once, a file with its next flush. To be called between flushes.
    pub(super) fn add_events(&mut self, new: NewEvents) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => writer.add_events(new),
            Self::Pipe(writer, ..) => writer.add_events(new),
            Self::Window(window) => {
                window.add_events(new);
                Ok(())
            }
        }
    }

    /// Takes readings of the clocks: a pipe has them at once, a file with its next flush. To be called between flushes.
    pub(super) fn add_clocks(&mut self, readings: &[ClockReading]) -> Result<(), WriteError> {
        match self {
            Self::File(writer, _) => {
                writer.add_clocks(readings);
                Ok(())
            }
            Self::Pipe(writer, ..) => writer.write_clocks(readings),
            Self::Window(window) => {
                window.add_clocks(readings);
                Ok(())
            }
        }
    }

    /// Looks whether what was written is still in the file, and writes the head again if it is not.
    pub(super) fn look(&mut self) -> Result<Option<FileChange>, WriteError> {
        let Self::File(writer, Some(watched)) = self else {
            return Ok(None);
        };
        // What cannot be read, as on a broken disk, is no deed of another process.
        let found = watched.look(writer.totals().file_bytes, &<TraceWriter>::MAGIC);
        let change = found.ok().flatten();
        if let Some(FileChange::Truncated { .. } | FileChange::Overwritten { .. }) = change {
            writer.restore_head()?;
        }
        Ok(change)
    }

    /// The handle of a file.
    pub(super) const fn take_handle(&mut self) -> Option<WatchedFile> {
        match self {
            Self::File(_, handle) => handle.take(),
            Self::Pipe(..) | Self::Window(_) => None,
        }
    }

    pub(super) fn finish(self, losses: &[Loss]) -> Result<Totals, WriteError> {
        match self {
            Self::File(writer, _) => writer.finish(losses),
            Self::Pipe(writer, ..) => writer.finish(losses),
            Self::Window(mut window) => {
                window.flush(true)?;
                Ok(window.totals())
            }
        }
    }
}

/// Maximum number of threads: more need more than half a million hits a second each.
const MAX_THREADS: usize = 8;

/// Maximum number of threads that compress a trace, including the one that drains the rings: one for each CPU that this process may use, and at
/// most 8. They are started when records wait.
pub(crate) fn most_threads() -> NonZeroUsize {
    let cpus = available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(MAX_THREADS).map_or(cpus, |most| cpus.min(most))
}

/// Interval at which the end of the recording is checked.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How long the reader may read nothing once the recording is to end.
const READER_LIMIT: Duration = Duration::from_secs(2);

/// Number of bytes that a writable pipe takes without blocking (`PIPE_BUF`).
const ATOMIC: usize = 4096;

/// The writing end.
#[derive(Debug)]
pub(super) struct Outlet {
    pipe: File,
    /// Whether a write never blocks.
    nonblocking: bool,
    end_signal: EndSignal,
    /// When the recording ends in any case.
    deadline: Option<Instant>,
    /// When the last bytes were written, or when the end of the recording was noticed, if that was later.
    waiting_since: Option<Instant>,
}

impl Outlet {
    /// Writes to a pipe, until a signal ends the recording or `duration` is over, and the reader has stopped reading.
    pub(super) fn new(pipe: File, end_signal: EndSignal, duration: Option<Duration>) -> Self {
        // Other processes share the file description as their standard output, and do not expect it to be non-blocking, so the pipe is
        // opened again.
        let own = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        let is_pipe = own.as_ref().is_ok_and(is_fifo);
        let (pipe, nonblocking) = match own {
            Ok(own) if is_pipe => (own, true),
            // A socket, or no right to it.
            _ => (pipe, false),
        };
        Self {
            pipe,
            nonblocking,
            end_signal,
            deadline: duration.and_then(|duration| Instant::now().checked_add(duration)),
            waiting_since: None,
        }
    }

    /// Waits until the pipe can be written to.
    fn wait(&mut self) -> io::Result<()> {
        loop {
            let mut polled = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::OUT)];
            match poll(&mut polled, Some(&STEP)) {
                Ok(1..) => return Ok(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_over = self
                .deadline
                .is_some_and(|deadline| deadline <= Instant::now());
            if is_over || self.end_signal.has_arrived() {
                let since = *self.waiting_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= READER_LIMIT {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the output is not read, and the recording is to end",
                    ));
                }
            }
        }
    }
}

fn is_fifo(file: &File) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.nonblocking {
            self.wait()?;
            let some = &bytes[..bytes.len().min(ATOMIC)];
            let written = self.pipe.write(some)?;
            self.waiting_since = None;
            return Ok(written);
        }
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                written => {
                    self.waiting_since = None;
                    return written;
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
