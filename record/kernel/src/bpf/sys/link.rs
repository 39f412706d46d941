//! Links: programs attached to sites, perf events and tracepoints.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::call::{open, raw};
use crate::host::cached_pages;

const RAW_TRACEPOINT_OPEN: i32 = 17;
const LINK_CREATE: i32 = 28;

/// `BPF_TRACE_UPROBE_MULTI`.
pub(super) const UPROBE_MULTI: u32 = 48;

/// `BPF_PERF_EVENT`.
const PERF_EVENT: u32 = 41;

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    _pad: u32,
}

#[repr(C)]
struct LinkPerfEvent {
    program: u32,
    event: u32,
    attach: u32,
    flags: u32,
    cookie: u64,
}

#[repr(C)]
struct LinkUprobeMulti {
    program: u32,
    _target: u32,
    attach: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    ref_ctr_offsets: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    _pad: u32,
}

/// Sites of one file for [`link_uprobes`]. The three lists have the same length.
#[derive(Clone, Debug, Default)]
pub struct Uprobes {
    /// File offsets.
    pub offsets: Vec<u64>,
    /// File offsets of the semaphores; 0 without a semaphore.
    pub ref_ctrs: Vec<u64>,
    /// Cookies, which the program reads at a hit.
    pub cookies: Vec<u64>,
}

impl Uprobes {
    /// Indexes of the pages that the kernel reads when it attaches.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        let sites = self.offsets.iter().zip(&self.ref_ctrs);
        sites.flat_map(|(&site, &semaphore)| cached_pages::of_site(site, semaphore))
    }
}

/// Attaches a program to all sites of a file: in the process `pid`, or in all processes (0). Dropping the link detaches it.
///
/// # Errors
/// The error of bpf(2); `InvalidInput` if the lists have different lengths.
pub fn link_uprobes(
    program: BorrowedFd<'_>,
    path: &CStr,
    sites: &Uprobes,
    pid: u32,
) -> io::Result<OwnedFd> {
    let mut attr = LinkUprobeMulti {
        program: raw(program),
        _target: 0,
        attach: UPROBE_MULTI,
        flags: 0,
        path: path.as_ptr() as u64,
        offsets: sites.offsets.as_ptr() as u64,
        ref_ctr_offsets: sites.ref_ctrs.as_ptr() as u64,
        cookies: sites.cookies.as_ptr() as u64,
        count: sites.offsets.len() as u32,
        multi_flags: 0,
        pid,
        _pad: 0,
    };
    if sites.ref_ctrs.len() != sites.offsets.len() || sites.cookies.len() != sites.offsets.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: `attr` is laid out as BPF_LINK_CREATE takes it for this kind; the three lists have `count` elements each.
    unsafe { open(LINK_CREATE, &mut attr) }
}

/// Attaches a program to a perf event. Dropping the link detaches it.
pub fn link_perf_event(
    program: BorrowedFd<'_>,
    event: BorrowedFd<'_>,
    cookie: u64,
) -> io::Result<OwnedFd> {
    let mut attr = LinkPerfEvent {
        program: raw(program),
        event: raw(event),
        attach: PERF_EVENT,
        flags: 0,
        cookie,
    };
    // SAFETY: `attr` is laid out as BPF_LINK_CREATE takes it for this kind and points nowhere.
    unsafe { open(LINK_CREATE, &mut attr) }
}

/// Attaches a [`ProgramKind::Tracepoint`](super::ProgramKind::Tracepoint) to what it was loaded for.
pub fn link_tracepoint(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = RawTracepoint {
        name: 0,
        program: raw(program),
        _pad: 0,
    };
    // SAFETY: `attr` is laid out as BPF_RAW_TRACEPOINT_OPEN takes it and points nowhere.
    unsafe { open(RAW_TRACEPOINT_OPEN, &mut attr) }
}
