//! The kernel's information about a program, map or link, by its descriptor.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::call::{bpf, open, raw};

const OBJ_GET_INFO_BY_FD: i32 = 15;

#[repr(C)]
struct GetInfo {
    descriptor: u32,
    len: u32,
    info: u64,
}

/// Fills in the information about a program, map or link.
///
/// # Safety
/// `T` must be a prefix of the object's information (`struct bpf_link_info`, `struct bpf_prog_info`), and its pointers must be valid for the
/// lengths in it.
pub(super) unsafe fn read_info<T>(object: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    let mut attr = GetInfo {
        descriptor: raw(object),
        len: size_of::<T>() as u32,
        info: (&raw mut *info) as u64,
    };
    // SAFETY: `attr` is laid out as BPF_OBJ_GET_INFO_BY_FD takes it, and points to `info` with its length; the rest is the caller's promise.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attr) }.map(drop)
}

/// Kinds of objects of which the kernel has ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum Listed {
    Link,
    Btf,
}

impl Listed {
    /// `BPF_LINK_GET_NEXT_ID`, `BPF_BTF_GET_NEXT_ID`.
    const fn next_id(self) -> i32 {
        match self {
            Self::Link => 31,
            Self::Btf => 23,
        }
    }

    /// `BPF_LINK_GET_FD_BY_ID`, `BPF_BTF_GET_FD_BY_ID`.
    const fn by_id(self) -> i32 {
        match self {
            Self::Link => 30,
            Self::Btf => 19,
        }
    }
}

/// What commands about ids take.
#[repr(C)]
#[derive(Default)]
struct Id {
    id: u32,
    next: u32,
    flags: u32,
}

/// The id after another one; 0 comes before the first.
pub(super) fn next_id(kind: Listed, id: u32) -> io::Result<u32> {
    let mut attr = Id {
        id,
        ..Id::default()
    };
    // SAFETY: `attr` is laid out as these commands take it.
    unsafe { bpf(kind.next_id(), &mut attr) }?;
    Ok(attr.next)
}

/// The object with an id.
pub(super) fn by_id(kind: Listed, id: u32) -> io::Result<OwnedFd> {
    let mut attr = Id {
        id,
        ..Id::default()
    };
    // SAFETY: `attr` is laid out as these commands take it; they return a new descriptor.
    unsafe { open(kind.by_id(), &mut attr) }
}

/// `struct bpf_prog_info` up to `recursion_misses` (Linux 5.12). No pointer of it is set, and no length.
#[repr(C)]
struct ProgramInfo {
    before: [u64; 26],
    recursion_misses: u64,
}

/// How often the kernel has not run a program because another run of it was interrupted on the CPU.
pub fn recursion_misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = ProgramInfo {
        before: [0; 26],
        recursion_misses: 0,
    };
    // SAFETY: it has no pointers.
    unsafe { read_info(program, &mut info) }?;
    Ok(info.recursion_misses)
}

/// `BPF_LINK_TYPE_*`.
const TYPE_PERF_EVENT: u32 = 7;
const TYPE_UPROBE_MULTI: u32 = 12;
/// `BPF_PERF_EVENT_UPROBE`, `BPF_PERF_EVENT_URETPROBE`.
const PERF_EVENT_UPROBES: [u32; 2] = [1, 2];

/// Maximum number of links, and of sites of a link, that are read.
const MAX_LINKS: usize = 1 << 14;
const MAX_SITES: u32 = 1 << 16;
/// Room for a path.
const PATH: usize = 4096;

/// A site to which a program is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UprobeOfLink {
    /// Number of the link.
    pub link: u32,
    /// The file, as the kernel shows it.
    pub path: PathBuf,
    /// File offset.
    pub offset: u64,
}

/// `struct bpf_link_info`, the parts of both types that are read here. Fields of kernels that do not know them stay 0.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    _pad: u32,
    multi: MultiInfo,
}

/// `uprobe_multi` (Linux 6.8).
#[repr(C)]
#[derive(Default)]
struct MultiInfo {
    path: u64,
    offsets: u64,
    ref_ctr_offsets: u64,
    cookies: u64,
    path_size: u32,
    count: u32,
    flags: u32,
    pid: u32,
}

/// The same with `perf_event.uprobe` (Linux 6.6).
#[repr(C)]
#[derive(Default)]
struct PerfEventInfo {
    kind: u32,
    id: u32,
    program: u32,
    _pad: u32,
    event: u32,
    _pad2: u32,
    path: u64,
    path_size: u32,
    offset: u32,
    cookie: u64,
    ref_ctr_offset: u64,
}

/// The uprobes of all links that this process may see; without `CAP_SYS_ADMIN` none.
pub fn uprobes_of_links() -> Vec<UprobeOfLink> {
    let mut found = Vec::new();
    let mut id = 0;
    for _ in 0..MAX_LINKS {
        let Ok(next) = next_id(Listed::Link, id) else {
            break;
        };
        id = next;
        // It may have been closed meanwhile.
        if let Ok(link) = by_id(Listed::Link, id) {
            let _ = add(&link, id, &mut found);
        }
    }
    found
}

fn add(link: &OwnedFd, id: u32, found: &mut Vec<UprobeOfLink>) -> io::Result<()> {
    let mut info = LinkInfo::default();
    // SAFETY: it has no pointers.
    unsafe { read_info(link.as_fd(), &mut info) }?;
    match info.kind {
        TYPE_UPROBE_MULTI => add_multi(link, id, info.multi.count, found),
        TYPE_PERF_EVENT => add_perf_event(link, id, found),
        _ => Ok(()),
    }
}

fn add_multi(link: &OwnedFd, id: u32, count: u32, found: &mut Vec<UprobeOfLink>) -> io::Result<()> {
    let mut path = [0; PATH];
    let mut offsets = vec![0_u64; count.min(MAX_SITES) as usize];
    let mut info = LinkInfo {
        multi: MultiInfo {
            path: path.as_mut_ptr() as u64,
            path_size: PATH as u32,
            offsets: offsets.as_mut_ptr() as u64,
            count: offsets.len() as u32,
            ..MultiInfo::default()
        },
        ..LinkInfo::default()
    };
    // SAFETY: both pointers are valid for the lengths in it.
    let outcome = unsafe { read_info(link.as_fd(), &mut info) };
    // With more sites than there is room for it fails with `ENOSPC`, and has those for which there is room.
    if outcome.is_err_and(|error| error.raw_os_error() != Some(libc::ENOSPC)) {
        return Ok(());
    }
    let path = path_of(&path);
    found.extend(offsets.into_iter().map(|offset| UprobeOfLink {
        link: id,
        path: path.clone(),
        offset,
    }));
    Ok(())
}

fn add_perf_event(link: &OwnedFd, id: u32, found: &mut Vec<UprobeOfLink>) -> io::Result<()> {
    let mut path = [0; PATH];
    let mut info = PerfEventInfo {
        path: path.as_mut_ptr() as u64,
        path_size: PATH as u32,
        ..PerfEventInfo::default()
    };
    // SAFETY: the pointer is valid for the length in it; other kinds of perf events have a name there, too.
    unsafe { read_info(link.as_fd(), &mut info) }?;
    if PERF_EVENT_UPROBES.contains(&info.event) {
        found.push(UprobeOfLink {
            link: id,
            path: path_of(&path),
            offset: info.offset.into(),
        });
    }
    Ok(())
}

fn path_of(bytes: &[u8]) -> PathBuf {
    let end = bytes.iter().position(|&byte| byte == 0);
    let path = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    PathBuf::from(OsStr::from_bytes(path))
}
