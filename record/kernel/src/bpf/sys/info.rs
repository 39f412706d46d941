//! What the kernel tells of a program, map or link by its descriptor.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

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
