//! BTF that we load: types of functions and of a map's values (Documentation/bpf/btf.rst).

use std::io;
use std::os::fd::OwnedFd;

use super::call::open;

const BTF_LOAD: i32 = 18;

#[repr(C)]
struct BtfLoad {
    data: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    _pad: u32,
}

/// Types for programs with functions: a program may take the address of a function only if its
/// functions have types. One type is enough for all functions, because the kernel does not check those of static functions.
pub(super) const TYPES: [u32; 16] = [
    // Header: magic, version 1, no flags; its length; offset and length of the types, and of the strings after them.
    0x0001_eb9f,
    24,
    0,
    40,
    40,
    15,
    // Type 1: the integer at 1 of the strings, of 4 bytes; signed, 32 bits.
    1,
    1 << 24,
    4,
    1 << 24 | 32,
    // Type 2: a function without arguments that returns type 1.
    0,
    13 << 24,
    1,
    // Type 3: the static function at 5 of the strings, of type 2.
    5,
    12 << 24,
    2,
];

pub(super) const NAMES: &[u8; 15] = b"\0int\0usdtrec_f\0";

pub(super) const FUNCTION_KIND: u32 = 3;

/// Types of the map of [`create_works`](super::create_works).
pub(super) const WORK_TYPES: [u32; 31] = [
    // Header, as in `TYPES`.
    0x0001_eb9f,
    24,
    0,
    100,
    100,
    53,
    // Type 1: the integer at 1 of the strings, of 8 bytes; 64 bits.
    1,
    1 << 24,
    8,
    64,
    // Type 2: the structure at 5, of 8 bytes, with one member: at 19, of type 1.
    5,
    4 << 24 | 1,
    8,
    19,
    1,
    0,
    // Type 3: the structure at 28, of 32 bytes, with members at 33, 38, 44 and 47: of types 2, 1, 1 and 1.
    28,
    4 << 24 | 4,
    32,
    33,
    2,
    0,
    38,
    1,
    64,
    44,
    1,
    128,
    47,
    1,
    192,
];

pub(super) const WORK_NAMES: &[u8; 53] =
    b"\0u64\0bpf_task_work\0__opaque\0held\0work\0since\0at\0token\0";

/// Loads types and their names into the kernel.
pub(super) fn load_btf(types: &[u32], names: &[u8]) -> io::Result<OwnedFd> {
    let mut data: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
    data.extend_from_slice(names);
    let mut attr = BtfLoad {
        data: data.as_ptr() as u64,
        log: 0,
        size: data.len() as u32,
        log_size: 0,
        log_level: 0,
        _pad: 0,
    };
    // SAFETY: `attr` is laid out as BPF_BTF_LOAD takes it; the data outlive the call.
    unsafe { open(BTF_LOAD, &mut attr) }
}
