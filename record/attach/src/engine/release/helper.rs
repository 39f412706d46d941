//! The helper's part of [`release`](super): descriptors are closed by processes that exit with them open.
//!
//! A SIGKILL during close(2) makes the kernel leave breakpoints in programs (see [`Keeper`]). A process that is exiting gets
//! no signals. Therefore the last copy is never closed by close(2): a process of its own exits with each descriptor, or with a few of them,
//! open. If any of these processes is killed at any moment, another one or the keeper still has a copy.
//!
//! A [`Keeper`] is references to descriptors that the kernel itself holds. When all processes that had them open are killed, a kernel worker closes them.
//!
//! A process that gets SIGKILL while it closes the last copy of a link or an event leaves breakpoints in programs: the kernel cannot write
//! to them while the signal is pending (`get_user_pages`; "failed to unregister, leaking uprobe"). A kernel worker gets no signals. The
//! references are in an io_uring, of which only the table of files is used (io_uring_register(2)).

use std::io::{self, PipeWriter, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::io_uring::{
    IoringRegisterOp, io_uring_files_update, io_uring_params, io_uring_ptr, io_uring_register,
    io_uring_setup,
};
use rustix::process::{WaitOptions, wait};

use crate::error::{HelperInput, RecordError, UsageError};

/// The first argument of the process that runs [`release`].
pub const RELEASE_VERB: &str = "release-probes";

/// Maximum number of processes that exit with descriptors open at a time.
pub(super) const MAX_CLOSERS: usize = 64;

/// Closes the descriptors whose numbers are read from standard input, in up to `at_once` processes at a time, and writes a byte to standard
/// output for each closed descriptor. `keeper` is the number of the keeper's descriptor.
///
/// # Errors
/// [`UsageError::Helper`] if standard input is not such a list.
pub fn release(at_once: usize, keeper: Option<RawFd>) -> Result<(), RecordError> {
    let wrong = || {
        RecordError::from(UsageError::Helper {
            verb: RELEASE_VERB,
            expected: HelperInput::Descriptors,
        })
    };
    let mut list = String::new();
    io::stdin().read_to_string(&mut list).map_err(|_| wrong())?;
    let numbers = list.split_whitespace().map(str::parse);
    let numbers: Vec<RawFd> = numbers.collect::<Result<_, _>>().map_err(|_| wrong())?;
    let descriptors: Option<Vec<_>> = numbers.into_iter().map(inherited).collect();
    let descriptors = descriptors.ok_or_else(wrong)?;
    let keeper = match keeper {
        Some(number) => Some(Keeper::from(inherited(number).ok_or_else(wrong)?)),
        None => None,
    };
    let closed = io::stdout().as_fd().try_clone_to_owned();
    let closed = closed.map(PipeWriter::from).map_err(|_| wrong())?;
    let mut closers = Closers {
        keeper,
        closed,
        living: Vec::new(),
    };
    closers.close(descriptors, at_once.max(1));
    Ok(())
}

/// A descriptor that this process inherited.
fn inherited(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl(2) takes integers.
    if number <= 2 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open, was inherited for this purpose, and nothing else in this process owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The processes that close descriptors.
struct Closers {
    keeper: Option<Keeper>,
    /// Pipe to the recorder: a byte for each closed descriptor.
    closed: PipeWriter,
    /// The running ones: process id, and number of descriptors.
    living: Vec<Closer>,
}

struct Closer {
    pid: i32,
    descriptors: usize,
}

impl Closers {
    fn close(&mut self, mut descriptors: Vec<OwnedFd>, at_once: usize) {
        let each = descriptors.len().div_ceil(MAX_CLOSERS).max(1);
        // From the end, so that the indexes of the others in the keeper stay valid.
        while !descriptors.is_empty() {
            while self.living.len() >= at_once && self.wait() {}
            let first = descriptors.len().saturating_sub(each);
            let theirs = descriptors.split_off(first);
            if let Err(theirs) = self.start(theirs, first, &mut descriptors) {
                // No process can be started: they are closed when this process exits.
                descriptors.extend(theirs);
                break;
            }
        }
        while self.wait() {}
        // Closed when this process exits, not before.
        descriptors.into_iter().for_each(std::mem::forget);
    }

    /// Starts a process that closes its copies of the other descriptors, and exits with these ones open. Our copies of these are closed in
    /// between. `first` is their index in the keeper. Returns the descriptors if no process can be started.
    fn start(
        &mut self,
        theirs: Vec<OwnedFd>,
        first: usize,
        others: &mut Vec<OwnedFd>,
    ) -> Result<(), Vec<OwnedFd>> {
        let places = first..first + theirs.len();
        let Ok((ours, other_end)) = UnixStream::pair() else {
            return Err(theirs);
        };
        // SAFETY: this process has a single thread, so the child may call any function.
        match unsafe { libc::fork() } {
            ..0 => return Err(theirs),
            0 => {
                drop(ours);
                others.clear();
                self.end(other_end, places);
            }
            pid => self.living.push(Closer {
                pid,
                descriptors: theirs.len(),
            }),
        }
        drop(other_end);
        // The child has closed its other copies, or was killed; then the keeper still has the descriptors.
        let _ = (&ours).read(&mut [0]);
        drop(theirs);
        let _ = (&ours).write(&[0]);
        Ok(())
    }

    /// Runs in such a process.
    fn end(&self, parent: UnixStream, places: Range<usize>) -> ! {
        let _ = (&parent).write(&[0]);
        // A byte, or the end of the pipe if the parent was killed.
        let _ = (&parent).read(&mut [0]);
        if let Some(keeper) = &self.keeper {
            // If this fails, the keeper closes them when this process has exited.
            let _ = keeper.let_go(places);
        }
        // SAFETY: exits at once, with the descriptors open.
        unsafe { libc::_exit(0) }
    }

    /// Waits until one of the processes has exited. Returns `false` if there is none.
    fn wait(&mut self) -> bool {
        let ended = match wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) => pid.as_raw_nonzero().get(),
            Err(rustix::io::Errno::INTR) => return true,
            Ok(None) | Err(_) => return false,
        };
        if let Some(at) = self.living.iter().position(|closer| closer.pid == ended) {
            let closer = self.living.swap_remove(at);
            // The recorder may have ended.
            let _ = self.closed.write_all(&vec![0; closer.descriptors]);
        }
        true
    }
}

/// References to descriptors. They are dropped when this is closed in all processes, or individually.
#[derive(Debug)]
pub(super) struct Keeper {
    ring: OwnedFd,
}

impl Keeper {
    /// Takes a reference to each descriptor.
    ///
    /// # Errors
    /// The errors of io_uring_setup(2) and io_uring_register(2): the kernel is older than 5.1, or io_uring is forbidden
    /// (`kernel.io_uring_disabled`, seccomp).
    pub(super) fn for_descriptors(descriptors: &[RawFd]) -> io::Result<Self> {
        let keeper = Self { ring: ring()? };
        keeper.register(
            IoringRegisterOp::RegisterFiles,
            descriptors,
            descriptors.len(),
        )?;
        Ok(keeper)
    }

    /// Drops the references at these indexes of the list that it was created from.
    pub(super) fn let_go(&self, places: Range<usize>) -> io::Result<()> {
        const NO_FILE: RawFd = -1;
        let files = vec![NO_FILE; places.len()];
        let mut update = io_uring_files_update::default();
        update.offset = u32::try_from(places.start).map_err(io::Error::other)?;
        update.fds = io_uring_ptr::new(files.as_ptr().cast_mut().cast());
        self.register(
            IoringRegisterOp::RegisterFilesUpdate,
            &[update],
            files.len(),
        )
    }

    fn register<T>(&self, what: IoringRegisterOp, list: &[T], count: usize) -> io::Result<()> {
        let count = u32::try_from(count).map_err(io::Error::other)?;
        // SAFETY: the two operations that are used read `count` descriptors from the list, or from the list that an update points to. Both
        // outlive the call, and the kernel keeps no pointer to them.
        unsafe { io_uring_register(&self.ring, what, list.as_ptr().cast(), count) }?;
        Ok(())
    }
}

impl From<OwnedFd> for Keeper {
    fn from(ring: OwnedFd) -> Self {
        Self { ring }
    }
}

impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The error if no io_uring can be created; `None` if it can.
pub fn missing() -> Option<io::Error> {
    ring().err()
}

/// The smallest possible one.
fn ring() -> io::Result<OwnedFd> {
    let mut parameters = io_uring_params::default();
    // SAFETY: the parameters refer to no other descriptor.
    Ok(unsafe { io_uring_setup(1, &mut parameters) }?)
}
