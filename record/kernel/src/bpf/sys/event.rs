//! Perf events of the uprobe PMU, for programs.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::{ioctls, perf_event_open};

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
    /// The process; `None` for all processes.
    pub pid: Option<i32>,
}

/// Opens a disabled perf event: for all processes on CPU 0, where a program attached to it runs on every CPU, or for one process.
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
    let (pid, cpu) = site.pid.map_or((-1, 0), |pid| (pid, -1));
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
