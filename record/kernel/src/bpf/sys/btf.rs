//! BTF (Documentation/bpf/btf.rst): types of functions and of a map's values, which we load; and that of the running kernel, by sysfs or by bpf(2).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use memmap2::MmapOptions;
use rustix::fs::fstatfs;
use usdtrec_format::Btf;

use super::super::insn::{Function, FunctionKind};

use super::call::open;
use super::info::{Listed, by_id, next_id, read_info};

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
#[derive(Debug, Default)]
pub(super) struct FunctionTypes {
    words: Vec<u32>,
    /// Number of types.
    count: u32,
    /// The type of each kind of function.
    known: Vec<(FunctionKind, u32)>,
}

/// Names of types: offsets in [`NAMES`].
const INT: u32 = 1;
const STATIC: u32 = 5;
const U64: u32 = 15;
const ADDRESS: u32 = 19;
const BYTES: u32 = 27;
const GLOBAL: u32 = 33;
const U8: u32 = 43;
const NAMES: &[u8; 46] = b"\0int\0usdtrec_f\0u64\0address\0bytes\0usdtrec_g\0u8\0";

/// Kinds of types (`BTF_KIND_*`), with their place in a type's second word.
const KIND_INT: u32 = 1 << 24;
const KIND_POINTER: u32 = 2 << 24;
const KIND_ARRAY: u32 = 3 << 24;
const KIND_STRUCTURE: u32 = 4 << 24;
const KIND_FUNCTION: u32 = 12 << 24;
const KIND_PROTOTYPE: u32 = 13 << 24;

/// Types that all programs with functions have: `int` and `u64`.
const INT_TYPE: u32 = 1;
const U64_TYPE: u32 = 2;

impl FunctionTypes {
    /// The types of the functions of a program.
    pub(super) fn from_functions(functions: &[Function]) -> Self {
        const SIGNED: u32 = 1 << 24;
        let mut types = Self::default();
        types.add(&[INT, KIND_INT, 4, SIGNED | 32]);
        types.add(&[U64, KIND_INT, 8, 64]);
        for function in functions {
            let is_known = |(kind, _): &(FunctionKind, u32)| *kind == function.kind;
            if !types.known.iter().any(is_known) {
                let kind = types.add_function(function.kind);
                types.known.push((function.kind, kind));
            }
        }
        types
    }

    /// The type of functions of a kind; 0 if there is none.
    pub(super) fn function_type(&self, kind: FunctionKind) -> u32 {
        let mut known = self.known.iter().filter(|(known, _)| *known == kind);
        known.next().map_or(0, |(_, id)| *id)
    }

    /// Loads them into the kernel.
    pub(super) fn load(&self) -> io::Result<OwnedFd> {
        load_types(&self.words, NAMES)
    }

    /// Adds a type; its id.
    fn add(&mut self, words: &[u32]) -> u32 {
        self.words.extend(words);
        self.count += 1;
        self.count
    }

    /// Adds a function of this kind, which returns an `int`.
    fn add_function(&mut self, kind: FunctionKind) -> u32 {
        const NUMBERS: [[u32; 2]; 2] = [[ADDRESS, U64_TYPE], [BYTES, U64_TYPE]];
        const IS_GLOBAL: u32 = 1;
        let (name, linkage, arguments) = match kind {
            FunctionKind::Static => (STATIC, 0, Vec::new()),
            FunctionKind::Global { arguments } => {
                let numbers = NUMBERS.into_iter().take(arguments.into());
                (GLOBAL, IS_GLOBAL, numbers.collect())
            }
            FunctionKind::WithMemory { bytes } => {
                let byte = self.add(&[U8, KIND_INT, 1, 8]);
                let memory = self.add(&[0, KIND_ARRAY, 0, byte, INT_TYPE, bytes]);
                let address = self.add(&[0, KIND_POINTER, memory]);
                let [first, second] = NUMBERS;
                (GLOBAL, IS_GLOBAL, vec![[ADDRESS, address], first, second])
            }
        };
        let mut prototype = vec![0, KIND_PROTOTYPE | arguments.len() as u32, INT_TYPE];
        prototype.extend(arguments.into_iter().flatten());
        let prototype = self.add(&prototype);
        self.add(&[name, KIND_FUNCTION | linkage, prototype])
    }
}

/// Types of the map of [`create_works`](super::create_works).
pub(super) const WORK_TYPES: [&[u32]; 8] = [
    // Type 1: the integer at 1 of the strings, of 8 bytes; 64 bits.
    &[1, KIND_INT, 8, 64],
    // Type 2: the structure at 5, of 8 bytes, with one member: its string, type and first bit.
    &[5, KIND_STRUCTURE | 1, 8],
    &[19, 1, 0],
    // Type 3: the structure at 28, of 32 bytes, with four members.
    &[28, KIND_STRUCTURE | 4, 32],
    &[33, 2, 0],
    &[38, 1, 64],
    &[44, 1, 128],
    &[47, 1, 192],
];

pub(super) const WORK_NAMES: &[u8; 53] =
    b"\0u64\0bpf_task_work\0__opaque\0held\0work\0since\0at\0token\0";

/// Loads types and their names into the kernel.
pub(super) fn load_types(types: &[u32], names: &[u8]) -> io::Result<OwnedFd> {
    const HEADER: u32 = 24;
    let bytes = 4 * types.len() as u32;
    // Magic, version 1, no flags; the header's length; offset and length of the types, and of the strings after them.
    let header = [0x0001_eb9f, HEADER, 0, bytes, bytes, names.len() as u32];
    let words = header.iter().chain(types);
    let mut data: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
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

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// What `/sys/kernel/btf/vmlinux` has; `None` if the kernel has none.
pub fn btf_from_sysfs() -> Option<Btf> {
    match mapped() {
        Some(data) => Btf::parse(data),
        None => Btf::parse(fs::read(VMLINUX).ok()?),
    }
}

/// The kernel's own pages, without a copy of megabytes. Mapped until the process ends. `None` before Linux 6.17, and if the file is none of sysfs.
fn mapped() -> Option<&'static [u8]> {
    /// `SYSFS_MAGIC`, statfs(2)
    const SYSFS: u64 = 0x6265_6572;
    let file = File::open(VMLINUX).ok()?;
    if fstatfs(&file).ok()?.f_type as u64 != SYSFS {
        return None;
    }
    // SAFETY: the kernel neither changes nor removes its types while it runs.
    let mapping = unsafe { MmapOptions::new().map_copy_read_only(&file) }.ok()?;
    Some(Box::leak(Box::new(mapping)))
}

/// The same where sysfs does not show it; needs `CAP_SYS_ADMIN`.
pub fn btf_from_kernel() -> Option<Btf> {
    Btf::parse(kernel_btf().ok()?)
}

/// Maximum number of BTF objects that are looked at: the kernel's is the first of a host.
const MAX_OBJECTS: usize = 64;
/// Maximum size that is read, bytes. That of a usual kernel is 6 MB.
const MAX_BYTES: u32 = 1 << 26;
const NAME: &[u8] = b"vmlinux\0";

/// `struct bpf_btf_info` (Linux 5.11).
#[repr(C)]
#[derive(Default)]
struct BtfInfo {
    data: u64,
    size: u32,
    id: u32,
    name: u64,
    name_size: u32,
    is_of_kernel: u32,
}

/// The kernel's BTF.
///
/// # Errors
/// The errors of bpf(2), such as `EPERM` without `CAP_SYS_ADMIN`; [`io::ErrorKind::NotFound`] if the kernel has none.
pub fn kernel_btf() -> io::Result<Vec<u8>> {
    let mut id = 0;
    for _ in 0..MAX_OBJECTS {
        id = next_id(Listed::Btf, id)?;
        let object = by_id(Listed::Btf, id)?;
        if let Some(data) = read(&object)? {
            return Ok(data);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The types of an object if it is the kernel's.
fn read(object: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut name = [0_u8; NAME.len()];
    let mut info = BtfInfo {
        name: name.as_mut_ptr() as u64,
        name_size: name.len() as u32,
        ..BtfInfo::default()
    };
    // SAFETY: the name's pointer is valid for its length; a longer name is an error. There is no room for data.
    let outcome = unsafe { read_info(object.as_fd(), &mut info) };
    if outcome.is_err() || info.is_of_kernel == 0 || name != NAME || info.size > MAX_BYTES {
        return Ok(None);
    }
    let mut data = vec![0; info.size as usize];
    let mut info = BtfInfo {
        data: data.as_mut_ptr() as u64,
        size: info.size,
        ..BtfInfo::default()
    };
    // SAFETY: the pointer is valid for the length.
    unsafe { read_info(object.as_fd(), &mut info) }?;
    Ok(Some(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_of_the_running_kernel() {
        // Kernels without BTF exist, but not for CI, where no test may be left out.
        let Some(btf) = btf_from_sysfs() else {
            let is_ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_ci, "expected a kernel with BTF at {VMLINUX}");
            return;
        };
        let tgid = btf.member("task_struct", &["tgid"]).unwrap();
        let pid = btf.member("task_struct", &["pid"]).unwrap();
        assert_eq!(tgid, pid + 4, "the two stand side by side in the source");
        assert!(btf.member("task_struct", &["signal"]).is_some());
        assert_eq!(btf.member("task_struct", &["no such member"]), None);
        assert_eq!(btf.member("no such structure", &["pid"]), None);
    }
}
