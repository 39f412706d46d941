//! The processes that are held.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_kernel::bpf::sys;

use crate::engine::bpf::program::LINKED;

/// The map of held processes, and the map of recorded processes.
#[derive(Debug)]
pub struct HeldProcesses {
    works: OwnedFd,
    tracked: OwnedFd,
}

impl HeldProcesses {
    pub(super) const fn new(works: OwnedFd, tracked: OwnedFd) -> Self {
        Self { works, tracked }
    }

    pub(super) fn works(&self) -> BorrowedFd<'_> {
        self.works.as_fd()
    }

    pub(super) fn tracked(&self) -> BorrowedFd<'_> {
        self.tracked.as_fd()
    }

    /// Whether a process is held: it executes nothing, and has no links of its own yet.
    pub fn has(&self, pid: i32) -> bool {
        u32::try_from(pid).is_ok_and(|pid| !self.has_links(pid) && self.token(pid).is_some())
    }

    /// Whether a process has links of its own.
    pub(super) fn has_links(&self, pid: u32) -> bool {
        sys::value_of(self.tracked(), pid).is_ok_and(|value| value == LINKED)
    }

    /// The token of a process that is held, or was until now.
    pub(super) fn token(&self, pid: u32) -> Option<u64> {
        sys::token_of(self.works(), pid.into()).ok()
    }
}
