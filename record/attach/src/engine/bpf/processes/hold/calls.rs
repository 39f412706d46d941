//! The calls of held processes, and the answers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use usdtrec_kernel::bpf::rings::ringbuf::Ring;
use usdtrec_kernel::bpf::sys;

use super::held::HeldProcesses;

/// Size of the ring of calls, bytes: more than 2,000 calls.
const RING: usize = 64 << 10;

/// Maximum number of processes that are checked.
const MAX_CHECKED_PROCESSES: usize = 1 << 16;

/// The ring of calls, and who is held.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Calls {
    ring: Ring,
    held: Arc<HeldProcesses>,
}

/// A process that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Call {
    /// Process id.
    pub(in crate::engine::bpf) pid: u32,
    /// A token that distinguishes it from others with the same id. `None`: probes must be attached to all processes of the files.
    pub(in crate::engine::bpf) token: Option<u32>,
    /// Since when it is held, time of `CLOCK_MONOTONIC`.
    pub(in crate::engine::bpf) since: Duration,
}

impl Calls {
    pub(super) fn new(held: HeldProcesses) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(RING, rustix::param::page_size(), None)?,
            held: Arc::new(held),
        })
    }

    pub(super) fn works(&self) -> BorrowedFd<'_> {
        self.held.works()
    }

    pub(super) fn tracked(&self) -> BorrowedFd<'_> {
        self.held.tracked()
    }

    /// Who is held.
    pub(in crate::engine::bpf) const fn held(&self) -> &Arc<HeldProcesses> {
        &self.held
    }

    /// Takes the calls that have arrived.
    pub(in crate::engine::bpf) fn take(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        self.ring.drain_arrived(|record| {
            calls.extend(parse(record));
        });
        calls
    }

    /// Whether a process that called is held, and still has its id.
    pub(in crate::engine::bpf) fn is_held(&self, pid: u32, token: u32) -> bool {
        self.held.token(pid) == Some(token.into())
    }

    /// Releases a process that has links of its own now. Returns `false` if it has ended.
    pub(in crate::engine::bpf) fn let_go(&self, pid: u32, token: u32) -> bool {
        sys::change(self.tracked(), pid, token).is_ok()
    }

    /// Whether all recorded processes have links of their own or are held.
    pub(in crate::engine::bpf) fn knows_all(&self) -> bool {
        // Key 0 is no process: the key after a missing one is the first. Others are added and removed meanwhile.
        let mut last = 0;
        for _ in 0..MAX_CHECKED_PROCESSES {
            let Ok(pid) = sys::next_key(self.tracked(), last) else {
                return true;
            };
            if !self.held.has_links(pid) && self.held.token(pid).is_none() {
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
