//! The event of a site, opened with its program.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::sys;

/// What opening the event of a site takes: made beforehand, because the call must not allocate ([`planting`](super::super::planter::planting)).
pub(super) struct Opening<'a> {
    /// Number of the uprobe PMU.
    pub(super) pmu: u32,
    pub(super) path: CString,
    /// File offset of the site.
    pub(super) offset: u64,
    /// File offset of its semaphore, or 0.
    pub(super) ref_ctr: u32,
    pub(super) program: BorrowedFd<'a>,
    /// `None` where the kernel has none (before Linux 5.15).
    pub(super) cookie: Option<u64>,
}

impl Opening<'_> {
    /// Opens the event with its program attached, and the link that attaches it; without cookies there is none.
    pub(super) fn open(&self) -> io::Result<(File, Option<OwnedFd>)> {
        let event = sys::open_uprobe(&sys::UprobeEvent {
            pmu: self.pmu,
            path: &self.path,
            offset: self.offset,
            ref_ctr: self.ref_ctr,
        })?;
        let link = match self.cookie {
            Some(cookie) => Some(sys::link_perf_event(self.program, event.as_fd(), cookie)?),
            None => {
                sys::set_program(event.as_fd(), self.program)?;
                None
            }
        };
        sys::enable(&event)?;
        Ok((event, link))
    }
}
