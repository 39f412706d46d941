//! What the kernel tells of a program, map or link by its descriptor.

use std::io;
use std::os::fd::BorrowedFd;

use super::call::{bpf, raw};

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

/// `struct bpf_prog_info` up to `recursion_misses` (Linux 5.12). No pointer of it is set, and no length.
#[repr(C)]
struct ProgramInfo {
    before: [u64; 26],
    recursion_misses: u64,
}

/// How often the kernel has not run a program because another run of it was interrupted on the CPU.
pub(in crate::engine::bpf) fn recursion_misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = ProgramInfo {
        before: [0; 26],
        recursion_misses: 0,
    };
    // SAFETY: it has no pointers.
    unsafe { read_info(program, &mut info) }?;
    Ok(info.recursion_misses)
}
