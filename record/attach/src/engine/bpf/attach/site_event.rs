//! The event of the uprobe PMU for a site, with its program.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_kernel::bpf::sys;

/// How the event of a site is opened: made beforehand, because the call must not allocate ([`planting`](usdtrec_kernel::separate_process::planting)).
pub(in crate::engine::bpf) struct SiteEvent<'a> {
    /// Number of the uprobe PMU.
    pub(in crate::engine::bpf) pmu: u32,
    pub(in crate::engine::bpf) path: CString,
    /// File offset of the site.
    pub(in crate::engine::bpf) offset: u64,
    /// Its semaphore ([`SiteOffsets::pmu_config`](crate::select::probe::SiteOffsets::pmu_config)).
    pub(in crate::engine::bpf) config: u64,
    pub(in crate::engine::bpf) program: BorrowedFd<'a>,
    /// `None` where the kernel has none (before Linux 5.15).
    pub(in crate::engine::bpf) cookie: Option<u64>,
}

/// An open event.
pub(in crate::engine::bpf) struct OpenSiteEvent {
    pub(in crate::engine::bpf) event: File,
    /// The link that attaches the program; `None` without cookies, where the event itself has the program.
    pub(in crate::engine::bpf) link: Option<OwnedFd>,
}

impl SiteEvent<'_> {
    /// Opens the event with its program attached.
    pub(in crate::engine::bpf) fn open(&self) -> io::Result<OpenSiteEvent> {
        let event = sys::open_uprobe(&sys::UprobeEvent {
            pmu: self.pmu,
            path: &self.path,
            offset: self.offset,
            config: self.config,
            pid: None,
        })?;
        let link = match self.cookie {
            Some(cookie) => Some(sys::link_perf_event(self.program, event.as_fd(), cookie)?),
            None => {
                sys::set_program(event.as_fd(), self.program)?;
                None
            }
        };
        sys::enable(&event)?;
        Ok(OpenSiteEvent { event, link })
    }
}
