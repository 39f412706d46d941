//! A pipe that is written without blocking for ever, because its reader may have stopped reading.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_kernel::signals::EndSignal;

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
pub(crate) struct Outlet {
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
    pub(crate) fn new(pipe: File, end_signal: EndSignal, duration: Option<Duration>) -> Self {
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
                        "nobody reads the output, and the recording is to end",
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
