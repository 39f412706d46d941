//! BTF that we load: types of functions and of a map's values (Documentation/bpf/btf.rst).

use std::io;
use std::os::fd::OwnedFd;

use super::super::insn::FunctionKind;
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

/// Types for programs with functions: a program may take the address of a function only if its functions have types. One type is enough for
/// all static functions, because the kernel does not check those. Global functions are checked by their arguments' types.
pub(super) const TYPES: [u32; 38] = [
    // Header: magic, version 1, no flags; its length; offset and length of the types, and of the strings after them.
    0x0001_eb9f,
    24,
    0,
    128,
    128,
    43,
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
    // Type 4: the integer at 15, of 8 bytes; 64 bits.
    15,
    1 << 24,
    8,
    64,
    // Type 5: a function of one argument, at 19, of type 4, that returns type 1.
    0,
    13 << 24 | 1,
    1,
    19,
    4,
    // Type 6: the global function at 33, of type 5.
    33,
    12 << 24 | 1,
    5,
    // Type 7: a function of two arguments, at 19 and 27.
    0,
    13 << 24 | 2,
    1,
    19,
    4,
    27,
    4,
    // Type 8: the global function at 33, of type 7.
    33,
    12 << 24 | 1,
    7,
];

pub(super) const NAMES: &[u8; 43] = b"\0int\0usdtrec_f\0u64\0address\0bytes\0usdtrec_g\0";

/// The type of a function.
pub(super) const fn function_type(kind: FunctionKind) -> u32 {
    match kind {
        FunctionKind::Static => 3,
        FunctionKind::Global { arguments: 1 } => 6,
        FunctionKind::Global { .. } => 8,
    }
}

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
