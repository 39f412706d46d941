//! Links: programs attached to sites, perf events and tracepoints; perf events of the uprobe PMU.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::{ioctls, perf_event_open};

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

/// A site for [`open_uprobe`].
#[derive(Clone, Copy, Debug)]
pub struct UprobeEvent<'a> {
    /// Number of the uprobe PMU.
    pub pmu: u32,
    /// The file.
    pub path: &'a CStr,
    /// File offset of the site.
    pub offset: u64,
    /// The upper half is the file offset of the semaphore; 0 without a semaphore.
    pub config: u64,
    /// Whose hits are counted.
    pub of: HitsOf,
}

/// Whose hits a perf event counts.
#[derive(Clone, Copy, Debug)]
pub enum HitsOf {
    /// Those of a process.
    Process(i32),
    /// Those of all processes on a CPU, which must be on line. A program that is attached to the event runs on every CPU.
    Cpu(u32),
}

/// Opens a disabled perf event.
pub fn open_uprobe(site: &UprobeEvent<'_>) -> io::Result<File> {
    let mut attr = perf_event_attr {
        type_: site.pmu,
        size: size_of::<perf_event_attr>() as u32,
        config: site.config,
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = 1;
    attr.set_disabled(1);
    attr.__bindgen_anon_3.uprobe_path = site.path.as_ptr() as u64;
    attr.__bindgen_anon_4.probe_offset = site.offset;
    let (pid, cpu) = match site.of {
        HitsOf::Process(pid) => (pid, -1),
        HitsOf::Cpu(cpu) => (-1, cpu.cast_signed()),
    };
    // SAFETY: `attr` is a whole perf_event_attr; its path outlives the call, which copies it.
    let descriptor =
        unsafe { perf_event_open(&raw mut attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC.into()) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Enables a perf event.
pub fn enable(event: &File) -> io::Result<()> {
    // SAFETY: the ioctl takes an integer.
    match unsafe { ioctls::ENABLE(event.as_fd().as_raw_fd(), 0) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Attaches a program to a perf event for as long as the event is open, without a cookie (before Linux 5.15).
pub fn set_program(event: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: PERF_EVENT_IOC_SET_BPF takes the descriptor of a program, which must be open during the call.
    match unsafe { ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd().cast_unsigned()) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
