//! The helper's part of [`release`](super::release): descriptors are closed by processes that end with them open.
//!
//! SIGKILL amid close(2) makes the kernel leave breakpoints in programs (see [`keeper`](super::keeper)). A process that is ending gets
//! no signal any more. So nobody closes the last copy: each descriptor is left to a process of its own, or each few, which ends. Whichever of
//! them is killed at whatever moment, another one, or the keeper, has a copy still.

use std::io::{self, PipeWriter, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::process::{WaitOptions, wait};

use super::keeper::Keeper;
use crate::RecordError;
use crate::usage_error::UsageError;

/// The verb that runs [`release`] in a process of its own.
pub const RELEASE_VERB: &str = "release-probes";

/// Most processes that end with descriptors open.
pub(super) const MOST: usize = 64;

/// Closes the descriptors whose numbers come from standard input, in processes of which so many live at once, with a byte on standard output
/// for each descriptor. `keeper` is the number of the descriptor that keeps them besides.
///
/// # Errors
/// [`RecordError::Usage`] if standard input is no such list.
pub fn release(at_once: usize, keeper: Option<RawFd>) -> Result<(), RecordError> {
    let wrong = || {
        RecordError::from(UsageError::Helper {
            verb: RELEASE_VERB,
            expected: "its standard input is a list of descriptors",
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

/// A descriptor that this process was started with.
fn inherited(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl(2) takes integers.
    if number <= 2 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, was inherited for this, and nothing in this process knows it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The processes that close.
struct Closers {
    keeper: Option<Keeper>,
    /// Gets a byte for each descriptor that is closed.
    closed: PipeWriter,
    /// Those that have not ended: process id, how many descriptors they close.
    living: Vec<Closer>,
}

struct Closer {
    pid: i32,
    descriptors: usize,
}

impl Closers {
    fn close(&mut self, mut descriptors: Vec<OwnedFd>, at_once: usize) {
        let each = descriptors.len().div_ceil(MOST).max(1);
        // From the end, so that what is left keeps its places in the keeper.
        while !descriptors.is_empty() {
            while self.living.len() >= at_once && self.wait() {}
            let first = descriptors.len().saturating_sub(each);
            let theirs = descriptors.split_off(first);
            if let Err(theirs) = self.start(theirs, first, &mut descriptors) {
                // There can be no other process: they are closed as this one ends.
                descriptors.extend(theirs);
                break;
            }
        }
        while self.wait() {}
        // As this process ends, and not before.
        descriptors.into_iter().for_each(std::mem::forget);
    }

    /// Starts a process that ends with some of them open and closes its copies of the others; ours of the former are closed then. `first` is
    /// their place in the keeper. Gives them back if there can be no process.
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
        // SAFETY: this process has one thread, so that the child may do what this one may.
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
        // It has closed the others', or is dead: then the keeper has them still.
        let _ = (&ours).read(&mut [0]);
        drop(theirs);
        let _ = (&ours).write(&[0]);
        Ok(())
    }

    /// What such a process does.
    fn end(&self, parent: UnixStream, places: Range<usize>) -> ! {
        let _ = (&parent).write(&[0]);
        // A byte, or the parent is dead.
        let _ = (&parent).read(&mut [0]);
        if let Some(keeper) = &self.keeper {
            // If it does not, it lets go of them when this process has ended.
            let _ = keeper.let_go(places);
        }
        // SAFETY: ends the process at once, with the descriptors open.
        unsafe { libc::_exit(0) }
    }

    /// Waits until one has ended. `false` if there is none.
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
