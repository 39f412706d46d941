//! Names of maps in a BPF file system.

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::call::{bpf, open, raw};

const OBJ_PIN: i32 = 6;
const OBJ_GET: i32 = 7;

#[repr(C)]
struct Object {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// Pins a map under a name in a BPF file system.
pub fn pin(map: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attr = Object {
        path: path.as_ptr() as u64,
        descriptor: raw(map),
        flags: 0,
    };
    // SAFETY: `attr` is laid out as BPF_OBJ_PIN takes it; the path outlives the call.
    unsafe { bpf(OBJ_PIN, &mut attr) }.map(drop)
}

/// Opens the map that is pinned under a name.
pub fn pinned(path: &CStr) -> io::Result<OwnedFd> {
    let mut attr = Object {
        path: path.as_ptr() as u64,
        descriptor: 0,
        flags: 0,
    };
    // SAFETY: `attr` is laid out as BPF_OBJ_GET takes it; the path outlives the call.
    unsafe { open(OBJ_GET, &mut attr) }
}
