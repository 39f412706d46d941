//! A probe that is attached for a moment.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use usdtrec_buildid_cache::served::Contents;
use usdtrec_kernel::bpf::sys::{UprobeEvent, open_uprobe};
use usdtrec_kernel::host::cached_pages::CachedPages;
use usdtrec_kernel::host::page_reading::PagedFile;

use super::super::events::pmu::pmu_type;
use crate::select::probe::SiteOffsets;

/// Attaches a probe to a site of a file in all processes, and removes it: what the kernel failed to remove earlier is then removed, unless another
/// tracer has a probe there.
///
/// # Errors
/// The error of `perf_event_open(2)`; a page of the site cannot be kept in the page cache.
pub fn attach_and_remove(file: &Contents, site: u64, semaphore: u64) -> io::Result<()> {
    let offsets = SiteOffsets {
        offset: site,
        ref_ctr: semaphore,
    };
    let path = CString::new(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))?;
    let stat = file.stat()?;
    let paged = PagedFile {
        contents: file,
        len: stat.len,
        device: stat.id.device,
    };
    let kept = CachedPages::default();
    kept.check(paged, offsets.pages())?;
    open_uprobe(&UprobeEvent {
        pmu: pmu_type().map_err(io::Error::other)?,
        path: &path,
        offset: site,
        config: offsets
            .pmu_config()
            .map_err(|_| io::ErrorKind::Unsupported)?,
        pid: None,
    })
    .map(drop)
}
