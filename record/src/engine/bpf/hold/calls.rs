//! The calls of held processes, and the answers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::super::program::LINKED;
use super::super::ringbuf::{Left, Ring};
use super::super::sys;

/// Size of the ring of calls, bytes: more than 2,000 calls.
const RING: usize = 64 << 10;

/// Maximum number of processes that are checked.
const MOST_LOOKS: usize = 1 << 16;

/// The ring of calls, the map of held processes, and the map of recorded processes.
#[derive(Debug)]
pub(in super::super) struct Calls {
    ring: Ring,
    works: OwnedFd,
    tracked: OwnedFd,
}

/// A process that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Call {
    /// Process id.
    pub(in super::super) pid: u32,
    /// A token that distinguishes it from others with the same id. `None`: probes must be attached to all processes of the files.
    pub(in super::super) token: Option<u32>,
    /// Since when it is held, time of `CLOCK_MONOTONIC`.
    pub(in super::super) since: Duration,
}

impl Calls {
    pub(super) fn new(works: OwnedFd, tracked: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(RING, rustix::param::page_size(), None)?,
            works,
            tracked,
        })
    }

    pub(super) fn works(&self) -> BorrowedFd<'_> {
        self.works.as_fd()
    }

    pub(super) fn tracked(&self) -> BorrowedFd<'_> {
        self.tracked.as_fd()
    }

    /// Takes the calls that have arrived.
    pub(in super::super) fn take(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        // A call that is still being written wakes this thread when it is complete.
        let end = self.ring.written();
        let _: Left = self.ring.drain(end, |record| {
            calls.extend(parse(record));
        });
        calls
    }

    /// Whether a process that called is held, and still has its id.
    pub(in super::super) fn is_held(&self, pid: u32, token: u32) -> bool {
        sys::token_of(self.works(), pid.into()).is_ok_and(|held| held == u64::from(token))
    }

    /// Releases a process that has links of its own now. Returns `false` if it has ended.
    pub(in super::super) fn let_go(&self, pid: u32, token: u32) -> bool {
        sys::change(self.tracked(), pid, token).is_ok()
    }

    /// Whether all recorded processes have links of their own or are held.
    pub(in super::super) fn knows_all(&self) -> bool {
        // Key 0 is no process: the key after a missing one is the first. Others are added and removed meanwhile.
        let mut last = 0;
        for _ in 0..MOST_LOOKS {
            let Ok(pid) = sys::next_key(self.tracked(), last) else {
                return true;
            };
            let value = sys::value_of(self.tracked(), pid);
            let has_links = value.is_ok_and(|value| value == LINKED);
            if !has_links && sys::token_of(self.works(), pid.into()).is_err() {
                return false;
            }
            last = pid;
        }
        false
    }
}

/// A record of the ring: process id, token, time in ns.
fn parse(record: &[u8]) -> Option<Call> {
    let word = |at: usize| {
        let bytes = record.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    let since = u64::from_ne_bytes(*record.get(8..)?.first_chunk()?);
    Some(Call {
        pid: word(0)?,
        token: Some(word(4)?).filter(|token| *token != 0),
        since: Duration::from_nanos(since),
    })
}

impl AsFd for Calls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
