//! A probe that is attached for a moment.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use super::super::bpf::{UprobeEvent, open_uprobe};
use super::super::events::pmu::pmu_type;
use crate::host::cached_pages::CachedPages;
use crate::host::page_reading::PagedFile;
use crate::select::probe::SiteOffsets;

/// Attaches a probe to a site of a file in all processes, and removes it: what the kernel failed to remove earlier is then removed, unless another
/// tracer has a probe there.
///
/// # Errors
/// The error of `perf_event_open(2)`; a page of the site cannot be kept in the page cache.
pub(crate) fn attach_and_remove(file: &File, site: u64, semaphore: u64) -> io::Result<()> {
    let offsets = SiteOffsets {
        offset: site,
        ref_ctr: semaphore,
    };
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let metadata = file.metadata()?;
    let paged = PagedFile {
        file,
        len: metadata.len(),
        device: metadata.dev(),
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
