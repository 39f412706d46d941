//! bpf(2), without a library between us and the kernel. Its arguments are parts of `union bpf_attr`
//! (`include/uapi/linux/bpf.h`), each as long as the newest field that is used.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::ioctls;

const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const MAP_GET_NEXT_KEY: i32 = 4;
const PROG_LOAD: i32 = 5;
const OBJ_PIN: i32 = 6;
const OBJ_GET: i32 = 7;
const MAP_LOOKUP_ELEM: i32 = 1;
const PROG_TEST_RUN: i32 = 10;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const BTF_LOAD: i32 = 18;
const LINK_CREATE: i32 = 28;

/// What our programs call is for programs under a licence compatible with the GPL; the project is under MIT, too.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// Kinds of maps (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum MapKind {
    Hash = 1,
    Array = 2,
    Ring = 27,
}

/// Kinds of programs (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum ProgramKind {
    /// For uprobes, too.
    Kprobe = 2,
    RawTracepoint = 17,
    /// On a tracepoint, with its arguments' types known from the kernel's BTF.
    Tracing = 26,
}

/// `BPF_F_MMAPABLE`.
pub(super) const MAPPABLE: u32 = 1 << 10;
/// `BPF_F_SLEEPABLE`.
pub(super) const SLEEPABLE: u32 = 1 << 4;
/// `BPF_TRACE_UPROBE_MULTI`.
pub(super) const UPROBE_MULTI: u32 = 48;
/// `BPF_TRACE_RAW_TP`.
pub(super) const TRACE_RAW_TP: u32 = 23;
/// `BPF_F_NO_PREALLOC`.
const NO_PREALLOC: u32 = 1;
/// `BPF_PERF_EVENT`.
const PERF_EVENT: u32 = 41;
/// Bytes of the verifier's log that are kept.
const LOG_BYTES: usize = 1 << 20;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
    interface: u32,
    btf: u32,
    key_kind: u32,
    value_kind: u32,
}

#[repr(C)]
struct MapElement {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct Object {
    path: u64,
    descriptor: u32,
    flags: u32,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach: u32,
    btf: u32,
    function_size: u32,
    functions: u64,
    function_count: u32,
    _line_size: u32,
    _lines: u64,
    _line_count: u32,
    /// Type in the kernel's BTF that a [`ProgramKind::Tracing`] is for.
    attach_kind: u32,
    _attach_program: u32,
    _pad: u32,
}

/// `struct bpf_func_info`.
#[repr(C)]
struct FunctionInfo {
    /// Index of its first instruction.
    start: u32,
    /// Its type in the program's BTF.
    kind: u32,
}

#[repr(C)]
struct BtfLoad {
    data: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    _pad: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: i32,
    _data_sizes: [u32; 2],
    _data: [u64; 2],
    _repeat: u32,
    _duration: u32,
    _context_sizes: [u32; 2],
    _contexts: [u64; 2],
    _flags: u32,
    _cpu: u32,
    _batch: u32,
    _pad: u32,
}

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

/// Sites of one file for [`link_uprobes`]: the three lists are equally long.
#[derive(Clone, Debug, Default)]
pub(super) struct Uprobes {
    /// File offsets.
    pub(super) offsets: Vec<u64>,
    /// File offsets of the semaphores, 0 for none.
    pub(super) ref_ctrs: Vec<u64>,
    /// What the program gets at a hit.
    pub(super) cookies: Vec<u64>,
}

/// Why a program was not loaded.
#[derive(Debug)]
pub(super) struct LoadError {
    /// The system call's error.
    pub(super) error: io::Error,
    /// What the verifier said.
    pub(super) log: String,
}

/// Calls bpf(2). The result is a descriptor, or 0.
///
/// # Safety
/// `attr` must be laid out as the command's part of `union bpf_attr`, and what it points to must be as long as it says.
unsafe fn bpf<T>(command: i32, attr: &mut T) -> io::Result<i32> {
    // SAFETY: the caller's promise; the size passed is that of `attr`.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<T>()) };
    i32::try_from(result)
        .ok()
        .filter(|result| *result >= 0)
        .ok_or_else(io::Error::last_os_error)
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: bpf(2) has just given this descriptor (close-on-exec) to us alone.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn raw(descriptor: BorrowedFd<'_>) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// A name that the kernel takes: letters, digits and `_`.
fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = from;
    }
    name
}

/// Makes a map.
pub(super) fn create_map(
    kind: MapKind,
    (key_size, value_size, entries): (u32, u32, u32),
    flags: u32,
) -> io::Result<OwnedFd> {
    let mut attr = MapCreate {
        kind: kind as u32,
        key_size,
        value_size,
        entries,
        flags,
        inner_map: 0,
        numa_node: 0,
        name: name("usdtrec"),
        interface: 0,
        btf: 0,
        key_kind: 0,
        value_kind: 0,
    };
    // SAFETY: `attr` is laid out as BPF_MAP_CREATE takes it and points nowhere.
    unsafe { bpf(MAP_CREATE, &mut attr) }.map(owned)
}

/// Types of [`create_works`]' map.
const WORK_TYPES: [u32; 28] = [
    // Header, as in `TYPES`.
    0x0001_eb9f,
    24,
    0,
    88,
    88,
    47,
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
    // Type 3: the structure at 28, of 24 bytes, with members at 33, 38 and 44: of types 2, 1 and 1.
    28,
    4 << 24 | 3,
    24,
    33,
    2,
    0,
    38,
    1,
    64,
    44,
    1,
    128,
];
const WORK_NAMES: &[u8; 47] = b"\0u64\0bpf_task_work\0__opaque\0held\0work\0since\0at\0";

/// Makes a hash map of 8-byte keys whose values are a `struct bpf_task_work` and two words (Linux 6.18).
pub(super) fn create_works(entries: u32) -> io::Result<OwnedFd> {
    let types = load_btf(&WORK_TYPES, WORK_NAMES)?;
    let mut attr = MapCreate {
        kind: MapKind::Hash as u32,
        key_size: 8,
        value_size: 24,
        entries,
        flags: NO_PREALLOC,
        inner_map: 0,
        numa_node: 0,
        name: name("usdtrec"),
        interface: 0,
        btf: raw(types.as_fd()),
        key_kind: 1,
        value_kind: 3,
    };
    // SAFETY: `attr` is laid out as BPF_MAP_CREATE takes it and points nowhere.
    unsafe { bpf(MAP_CREATE, &mut attr) }.map(owned)
}

/// Puts a key into a hash map of 4-byte keys and values.
pub(super) fn insert(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    element(MAP_UPDATE_ELEM, map, &key, Some(&mut 1)).map(drop)
}

/// Takes a key out of a hash map of 4-byte keys and values.
pub(super) fn remove(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    element(MAP_DELETE_ELEM, map, &key, None).map(drop)
}

/// The key that follows `after` in a hash map of 4-byte keys, or that comes first if `after` is no longer in it.
pub(super) fn next_key(map: BorrowedFd<'_>, after: u32) -> io::Result<u32> {
    let mut next = 0;
    element(MAP_GET_NEXT_KEY, map, &after, Some(&mut next))?;
    Ok(next)
}

/// The value of a key in a hash map of 4-byte keys and 8-byte values.
pub(super) fn time_of(map: BorrowedFd<'_>, key: u32) -> io::Result<u64> {
    let mut value = 0_u64;
    let mut attr = MapElement {
        map: raw(map),
        _pad: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: std::ptr::from_mut(&mut value) as u64,
        flags: 0,
    };
    // SAFETY: `attr` is laid out as the commands on elements take it; key and value are as long as those of the map.
    unsafe { bpf(MAP_LOOKUP_ELEM, &mut attr) }?;
    Ok(value)
}

/// Gives a map a name in a BPF file system, where it stays.
pub(super) fn pin(map: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attr = Object {
        path: path.as_ptr() as u64,
        descriptor: raw(map),
        flags: 0,
    };
    // SAFETY: `attr` is laid out as BPF_OBJ_PIN takes it; the path outlives the call.
    unsafe { bpf(OBJ_PIN, &mut attr) }.map(drop)
}

/// The map of a name in a BPF file system.
pub(super) fn pinned(path: &CStr) -> io::Result<OwnedFd> {
    let mut attr = Object {
        path: path.as_ptr() as u64,
        descriptor: 0,
        flags: 0,
    };
    // SAFETY: `attr` is laid out as BPF_OBJ_GET takes it; the path outlives the call.
    unsafe { bpf(OBJ_GET, &mut attr) }.map(owned)
}

fn element(
    command: i32,
    map: BorrowedFd<'_>,
    key: &u32,
    value: Option<&mut u32>,
) -> io::Result<i32> {
    let mut attr = MapElement {
        map: raw(map),
        _pad: 0,
        key: std::ptr::from_ref(key) as u64,
        // Deleting has none, and wants 0 there.
        value: value.map_or(0, |value| std::ptr::from_mut(value) as u64),
        flags: 0,
    };
    // SAFETY: `attr` is laid out as the commands on elements take it; key and value are 4 bytes, as in all maps
    // that this is called for, and outlive the call.
    unsafe { bpf(command, &mut attr) }
}

/// A program to be loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    pub(super) kind: ProgramKind,
    pub(super) words: &'a [u64],
    /// Indexes of the first words of its functions, that of the program itself first; empty if it has no other.
    pub(super) functions: &'a [usize],
    /// 0 or a constant of this file.
    pub(super) flags: u32,
    /// 0 or a constant of this file.
    pub(super) expected_attach: u32,
    /// Type in the kernel's BTF that a [`ProgramKind::Tracing`] is for; 0 for others.
    pub(super) attach_kind: u32,
}

/// Types for programs with functions (Documentation/bpf/btf.rst): the kernel takes the address of a function only of those whose
/// functions have types. One type is enough for all, as it does not check those of static functions.
const TYPES: [u32; 16] = [
    // Header: magic, version 1, no flags; its length; offset and length of the types, and of the strings behind them.
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
const NAMES: &[u8; 15] = b"\0int\0usdtrec_f\0";
const FUNCTION_KIND: u32 = 3;

/// Loads types and their names.
fn load_btf(types: &[u32], names: &[u8]) -> io::Result<OwnedFd> {
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
    unsafe { bpf(BTF_LOAD, &mut attr) }.map(owned)
}

/// Loads a program.
pub(super) fn load(program: &Program<'_>) -> Result<OwnedFd, LoadError> {
    let types = if program.functions.is_empty() {
        None
    } else {
        let error = |error| LoadError {
            error,
            log: String::new(),
        };
        Some(load_btf(&TYPES, NAMES).map_err(error)?)
    };
    let functions = program.functions.iter().map(|start| FunctionInfo {
        start: *start as u32,
        kind: FUNCTION_KIND,
    });
    let functions: Vec<_> = functions.collect();
    let mut attr = ProgramLoad {
        kind: program.kind as u32,
        count: program.words.len() as u32,
        instructions: program.words.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: program.flags,
        name: name("usdtrec"),
        interface: 0,
        expected_attach: program.expected_attach,
        btf: types.as_ref().map_or(0, |types| raw(types.as_fd())),
        function_size: types
            .as_ref()
            .map_or(0, |_| size_of::<FunctionInfo>() as u32),
        functions: types.as_ref().map_or(0, |_| functions.as_ptr() as u64),
        function_count: functions.len() as u32,
        _line_size: 0,
        _lines: 0,
        _line_count: 0,
        attach_kind: program.attach_kind,
        _attach_program: 0,
        _pad: 0,
    };
    // SAFETY: `attr` is laid out as BPF_PROG_LOAD takes it; instructions, licence and functions outlive the call.
    let first = unsafe { bpf(PROG_LOAD, &mut attr) };
    let error = match first {
        Ok(descriptor) => return Ok(owned(descriptor)),
        Err(error) => error,
    };
    // Once more, with the verifier's log, which costs time.
    let mut log = vec![0_u8; LOG_BYTES];
    attr.log_level = 1;
    attr.log_size = LOG_BYTES as u32;
    attr.log = log.as_mut_ptr() as u64;
    // SAFETY: as before, and the log is as long as `log_size` says.
    match unsafe { bpf(PROG_LOAD, &mut attr) } {
        Ok(descriptor) => Ok(owned(descriptor)),
        Err(_) => {
            let len = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(log.get(..len).unwrap_or_default());
            Err(LoadError {
                error,
                log: log.trim_end().to_owned(),
            })
        }
    }
}

/// Attaches a program to all sites of a file at once: in the process `pid`, or in all (0). Dropping the link takes it away from all
/// of them.
pub(super) fn link_uprobes(
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
    unsafe { bpf(LINK_CREATE, &mut attr) }.map(owned)
}

/// Attaches a program to a perf event. The event fires as long as the link is there.
pub(super) fn link_perf_event(
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
    unsafe { bpf(LINK_CREATE, &mut attr) }.map(owned)
}

/// Attaches a program to a tracepoint of the kernel; without a name, a [`ProgramKind::Tracing`] to the one that it is for.
pub(super) fn link_tracepoint(program: BorrowedFd<'_>, name: Option<&CStr>) -> io::Result<OwnedFd> {
    let mut attr = RawTracepoint {
        name: name.map_or(0, |name| name.as_ptr() as u64),
        program: raw(program),
        _pad: 0,
    };
    // SAFETY: `attr` is laid out as BPF_RAW_TRACEPOINT_OPEN takes it; the name outlives the call.
    unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attr) }.map(owned)
}

/// Runs a [`ProgramKind::RawTracepoint`] once, here and without arguments. Gives its result.
pub(super) fn run(program: BorrowedFd<'_>) -> io::Result<i32> {
    let mut attr = TestRun {
        program: raw(program),
        ..TestRun::default()
    };
    // SAFETY: `attr` is laid out as BPF_PROG_TEST_RUN takes it and points nowhere.
    unsafe { bpf(PROG_TEST_RUN, &mut attr) }?;
    Ok(attr.result)
}

/// Opens a perf event for all processes on CPU 0; its program runs on every CPU. The attr's pointers must be good.
pub(super) fn open_event(
    attr: &mut perf_event_open_sys::bindings::perf_event_attr,
    path: &CStr,
    offset: u64,
) -> io::Result<File> {
    attr.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
    attr.__bindgen_anon_4.probe_offset = offset;
    let cloexec = perf_event_open_sys::bindings::PERF_FLAG_FD_CLOEXEC;
    // SAFETY: `attr` is a whole perf_event_attr; the path outlives the call, which copies it.
    let descriptor =
        unsafe { perf_event_open_sys::perf_event_open(attr, -1, 0, -1, cloexec.into()) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Starts a perf event.
pub(super) fn enable(event: &File) -> io::Result<()> {
    // SAFETY: the ioctl takes an integer.
    match unsafe { ioctls::ENABLE(event.as_fd().as_raw_fd(), 0) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.error)?;
        match self.log.as_str() {
            "" => Ok(()),
            log => write!(f, "; the verifier says:\n{log}"),
        }
    }
}
