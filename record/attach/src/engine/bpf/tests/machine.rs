//! A machine for programs: an interpreter (`rbpf`) with registers, memory and a kernel that are made up.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use usdtrec_kernel::bpf::features::members::IdMembers;
use usdtrec_kernel::bpf::insn::{Code, Helper, Map};
use usdtrec_kernel::bpf::preemption::Preemption;

use super::super::control;
use super::super::nonresident::Members;

/// State of the kernel: its answers, and what programs passed to it. The interpreter's helpers are plain functions: they find it here.
#[derive(Debug, Default)]
struct Kernel {
    /// Where a record goes, 8-aligned.
    ring: Vec<u64>,
    reserved: usize,
    is_reserved: bool,
    /// Whether preemption is disabled.
    has_disabled: bool,
    /// End of the program's stack; known from the lookup of the ring or of the process on.
    frame: u64,
    submitted: bool,
    discarded: usize,
    /// Where bytes were read that may not be resident.
    touched: Vec<u64>,
    /// Memory of the kernel.
    words: HashMap<u64, u64>,
    /// Ranges with what a look at their mapping finds; elsewhere it is `mapping`.
    mappings: Vec<(std::ops::Range<u64>, Mapping)>,
    mapping: Mapping,
    /// How many more looks at a mapping fail.
    busy: u32,
    is_old: bool,
    cookie: u64,
    cpu: u64,
    pid_tgid: u64,
    tracked: HashSet<u32>,
    /// Address of what programs load by its type: the task with its ids, and its credentials.
    task_at: u64,
    /// Address of the value of these in the map.
    links_at: u64,
    /// Address of the thread's entry in the map of rates; 0 if it has none.
    rate_at: u64,
    /// Size of the keys of the map of counts, and the key that the program added to it.
    key_size: usize,
    counted: Option<Vec<u8>>,
    /// Address of the count of that key.
    count_at: u64,
    /// Bytes of memory that are not those of [`byte_at`].
    stored: HashMap<u64, u8>,
    /// Bytes that are in the ring.
    filled: u64,
    /// Reads of user memory.
    reads: usize,
    /// The time, ns.
    now: u64,
    /// Records that were copied to the ring.
    put: Vec<Vec<u8>>,
    /// Addresses that cannot be read.
    forbidden: Vec<std::ops::Range<u64>>,
    /// Addresses that can be read only once they were touched.
    absent: Vec<std::ops::Range<u64>>,
}

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::new(Kernel::default());
    static SPANS: RefCell<SpanTable> = RefCell::new(SpanTable::default());
}

/// The map of open spans, which outlives the runs of programs.
#[derive(Debug, Default)]
struct SpanTable {
    /// Number of words of an element.
    words: usize,
    /// An element of zeros and the word after it, then elements.
    memory: Vec<u64>,
    /// The places of elements by their keys.
    places: HashMap<Vec<u8>, usize>,
    free: Vec<usize>,
}

/// Size of a key of that map, bytes.
const SPAN_KEY: usize = 24;
/// Offset of a key from the end of the program's stack.
const SPAN_KEY_AT: u64 = 200;

/// Makes an empty map of open spans, of so many elements of this size.
pub(super) fn make_spans(elements: usize, bytes: usize) {
    let words = bytes.div_ceil(8);
    SPANS.set(SpanTable {
        words,
        memory: vec![0; words + 1 + elements * words],
        places: HashMap::new(),
        free: (0..elements).map(|at| words + 1 + at * words).collect(),
    });
}

impl SpanTable {
    fn address(&self, place: usize) -> u64 {
        std::ptr::from_ref(&self.memory[place]) as u64
    }
}

/// Maps, as programs have them.
const RINGS: u64 = 1;
const TRACKED: u64 = 2;
const RATES: u64 = 6;
const COUNTS: u64 = 7;
const SLOTS: u64 = 8;
const SPAN_MAP: u64 = 9;
/// The ring of the CPU.
const RING: u64 = 5;
/// Words of the control map.
const CONTROL: usize = 1024;
/// The time.
pub(super) const NOW: u64 = 987_654_321_000;
/// The user of the process.
pub(super) const UID: u64 = 1033;
/// Bytes of `struct pt_regs`.
const CONTEXT: usize = 272;
/// Bytes of the stack of a program and of its functions.
const MAIN_FRAME: u64 = 320;
const FRAME: u16 = 96;
/// What is in a record before the program writes it.
const STALE: u64 = 0xdddd_dddd_dddd_dddd;
static STALE_RING: [u64; 1 << 14] = [STALE; 1 << 14];

/// Address of the made-up task, whose thread-local storage begins at [`THREAD`].
const TASK: u64 = 0xffff_8880_0000_0000;
pub(super) const THREAD: u64 = 0x7f00_0000_1000;

/// Offsets of [`Kernel::task_at`].
pub(super) const ID_MEMBERS: IdMembers = IdMembers {
    process: 4,
    thread: 0,
    credentials: 8,
    user: 0,
};

/// What the process is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) mm_users: u64,
    pub(super) euid: u64,
    pub(super) capabilities: u64,
    pub(super) level: u64,
}

/// What a look at a mapping finds, in the order of the program's slots; `None` where nothing is mapped.
pub(super) type Mapping = Option<[u64; 8]>;

/// Offsets of the made-up kernel.
pub(super) const MEMBERS: Members = Members {
    mm: 0x100,
    cred: 0x108,
    mm_users: 0x10,
    euid: 0x20,
    cap_effective: 0x28,
    user_ns: 0x30,
    level: 0x40,
    vm_flags: 0x50,
    vm_file: 0x58,
    vm_ops: 0x60,
    userfaultfd: Some(0x68),
    f_inode: 0x70,
    i_mode: 0x78,
    i_sb: 0x80,
    s_magic: 0x88,
    s_bdev: 0x90,
    bd_disk: 0x98,
    disk_name: 0xa0,
};

const MM: u64 = 0xffff_8880_0001_0000;
const CRED: u64 = 0xffff_8880_0002_0000;
const USER_NS: u64 = 0xffff_8880_0003_0000;

/// A hit: what the machine holds when the program runs.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    /// The registers' values by their offset in the context.
    pub(super) context: [u64; CONTEXT / 8],
    pub(super) cookie: u64,
    pub(super) cpu: u64,
    /// Process in the upper half, thread in the lower.
    pub(super) pid_tgid: u64,
    pub(super) tracked: HashSet<u32>,
    /// Value of these in the map.
    pub(super) links: u32,
    /// Bytes of memory that are not those of [`byte_at`].
    pub(super) stored: HashMap<u64, u8>,
    pub(super) forbidden: Vec<std::ops::Range<u64>>,
    pub(super) absent: Vec<std::ops::Range<u64>>,
    pub(super) enabled: bool,
    pub(super) owner: Owner,
    pub(super) mapping: Mapping,
    /// Other mappings than that.
    pub(super) mappings: Vec<(std::ops::Range<u64>, Mapping)>,
    /// How many looks at a mapping fail, because another thread holds `mmap_lock`.
    pub(super) busy: u32,
    /// Whether the kernel does not count the NUL of an empty string.
    pub(super) is_old: bool,
    /// Unreadable strings in a row and the time until which none is read, string by string.
    pub(super) habits: Vec<u64>,
    /// Bytes that are in the ring.
    pub(super) filled: u64,
    /// When the thread's second began, and how many stacks it has taken since; `None` if it has taken none.
    pub(super) rate: Option<[u64; 2]>,
    /// Size of the keys of the map of counts, bytes.
    pub(super) key_size: usize,
    /// The time, ns.
    pub(super) now: u64,
}

impl Default for Hit {
    fn default() -> Self {
        Self {
            context: std::array::from_fn(|index| register_value(8 * index)),
            cookie: 0x2711_0000_0000_0000,
            cpu: 3,
            pid_tgid: 1234 << 32 | 1235,
            tracked: HashSet::new(),
            links: 0,
            stored: HashMap::new(),
            forbidden: Vec::new(),
            absent: Vec::new(),
            enabled: true,
            owner: Owner {
                mm_users: 1,
                euid: 1000,
                capabilities: 0,
                level: 0,
            },
            mapping: Some(ANONYMOUS),
            mappings: Vec::new(),
            busy: 0,
            is_old: false,
            habits: Vec::new(),
            filled: 0,
            rate: None,
            key_size: 0,
            now: NOW,
        }
    }
}

/// A mapping of no file, readable and writable.
pub(super) const ANONYMOUS: [u64; 8] = [0x73, 0, 0, 0, 0, 0, 0, 0];

/// A mapping of a file on a file system with this magic number, on a device with this name.
pub(super) fn file(magic: u64, disk: &str) -> [u64; 8] {
    let mut name = [0; 8];
    name[..disk.len()].copy_from_slice(disk.as_bytes());
    let name = u64::from_le_bytes(name);
    [0x71, 0x1000, 0x2000, 0, 0o100_644, magic, name, name]
}

/// What a program did.
pub(super) struct Ran {
    /// The record that it submitted, if it did.
    pub(super) record: Option<Vec<u8>>,
    /// The key that it added to the map of counts, with its count.
    pub(super) counted: Option<(Vec<u8>, u64)>,
    /// Records that it discarded.
    pub(super) discarded: usize,
    /// Where it touched memory.
    pub(super) touched: Vec<u64>,
    /// Reads of user memory.
    pub(super) reads: usize,
    /// Hits that it counted as lost, and those of them that a filter could not judge.
    pub(super) lost: u64,
    pub(super) unjudged: u64,
    /// Records that it copied to the ring.
    pub(super) put: Vec<Vec<u8>>,
    /// The words of the control map.
    pub(super) control: Vec<u64>,
}

/// The value that the register at an offset of the context has: a user address that no other register has.
pub(super) const fn register_value(offset: usize) -> u64 {
    0x7f5a_1000_8000 + offset as u64 * 0x1_0003_0107
}

/// The byte of memory at an address.
pub(super) const fn byte_at(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as u8
}

impl Hit {
    /// Runs a program; the record that it submitted, if it did.
    pub(super) fn run(&self, code: &Code) -> Option<Vec<u8>> {
        self.run_all(code).record
    }

    /// Memory of the kernel about the process.
    fn words(&self) -> HashMap<u64, u64> {
        let owner = self.owner;
        let all = [
            (TASK + u64::from(MEMBERS.mm), MM),
            (TASK + u64::from(MEMBERS.cred), CRED),
            (MM + u64::from(MEMBERS.mm_users), owner.mm_users),
            (CRED + u64::from(MEMBERS.euid), owner.euid),
            (CRED + u64::from(MEMBERS.cap_effective), owner.capabilities),
            (CRED + u64::from(MEMBERS.user_ns), USER_NS),
            (USER_NS + u64::from(MEMBERS.level), owner.level),
            (TASK + 0x1490, THREAD),
            // A descriptor has the lowest 24 bits of its base from bit 16 on; the highest 8 are 0 here.
            (TASK + 0x1460, (THREAD & 0xff_ffff) << 16),
            (TASK + 0x1468, 0),
            (TASK + 0x1470, 0),
        ];
        all.into()
    }

    /// Runs a program.
    pub(super) fn run_all(&self, code: &Code) -> Ran {
        assert_eq!(
            unreachable(code),
            [0; 0],
            "the kernel refuses such a program"
        );
        KERNEL.with_borrow_mut(|kernel| {
            *kernel = Kernel {
                ring: STALE_RING.to_vec(),
                cookie: self.cookie,
                cpu: self.cpu,
                pid_tgid: self.pid_tgid,
                tracked: self.tracked.clone(),
                stored: self.stored.clone(),
                forbidden: self.forbidden.clone(),
                absent: self.absent.clone(),
                words: self.words(),
                mapping: self.mapping,
                mappings: self.mappings.clone(),
                busy: self.busy,
                is_old: self.is_old,
                filled: self.filled,
                key_size: self.key_size,
                now: self.now,
                ..Kernel::default()
            }
        });
        let mut control = vec![0_u64; CONTROL];
        control[0] = u64::from(self.enabled);
        let habits = control::strings_at(1) as usize / 8;
        control[habits..habits + self.habits.len()].copy_from_slice(&self.habits);
        let links = CONTROL - 3;
        control[links] = self.links.into();
        let count = CONTROL - 4;
        KERNEL.with_borrow_mut(|kernel| {
            kernel.links_at = std::ptr::from_ref(&control[links]) as u64;
            kernel.count_at = std::ptr::from_ref(&control[count]) as u64;
        });
        if let Some(rate) = self.rate {
            let entry = &mut control[CONTROL - rate.len()..];
            entry.copy_from_slice(&rate);
            KERNEL.with_borrow_mut(|kernel| kernel.rate_at = entry.as_ptr() as u64);
        }
        let mut task = [self.pid_tgid, 0, 7 << 32 | UID];
        let task_at = task.as_ptr() as u64;
        task[1] = task_at + 16;
        KERNEL.with_borrow_mut(|kernel| kernel.task_at = task_at);
        let program = bytes_of(code, control.as_ptr() as u64);
        let context: Vec<u8> = self
            .context
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let mut context = context;
        let mut machine = rbpf::EbpfVmRaw::new(None).unwrap();
        machine.set_verifier(|_| Ok(())).unwrap();
        // The program's own frame is the first, and larger than the interpreter supposes.
        let stack = |_: &[u8], at: usize, _: &mut dyn std::any::Any| {
            if at == 0 { MAIN_FRAME as u16 } else { FRAME }
        };
        machine
            .set_stack_usage_calculator(stack, Box::new(()))
            .unwrap();
        machine.set_program(&program).unwrap();
        let ring = KERNEL.with_borrow(|kernel| kernel.ring.as_ptr() as u64);
        machine.register_allowed_memory(ring..ring + size_of_val(&STALE_RING) as u64);
        let control_at = control.as_ptr() as u64;
        machine.register_allowed_memory(task_at..task_at + size_of_val(&task) as u64);
        machine.register_allowed_memory(control_at..control_at + 8 * CONTROL as u64);
        SPANS.with_borrow_mut(|spans| {
            // The room for elements that stay is not what these tests are about.
            if let Some(room) = spans.memory.get_mut(spans.words) {
                *room = 0;
            }
            let at = spans.memory.as_ptr() as u64;
            machine.register_allowed_memory(at..at + 8 * spans.memory.len() as u64);
        });
        machine
            .register_helper(PREEMPTION.disable, |_, _, _, _, _| preempt(false))
            .unwrap();
        machine
            .register_helper(PREEMPTION.enable, |_, _, _, _, _| preempt(true))
            .unwrap();
        for (helper, function) in HELPERS {
            machine.register_helper(helper as u32, function).unwrap();
        }
        assert_eq!(machine.execute_program(&mut context).unwrap(), 0);
        KERNEL.with_borrow(|kernel| {
            assert!(!kernel.is_reserved, "the kernel refuses such a program");
            assert!(!kernel.has_disabled, "the kernel refuses such a program");
            let record = kernel.submitted.then(|| {
                let words = kernel.ring[..kernel.reserved.div_ceil(8)].iter();
                let bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
                bytes[..kernel.reserved].to_vec()
            });
            Ran {
                lost: control[control::LOSSES as usize / 8],
                unjudged: control[control::UNJUDGED as usize / 8],
                record,
                counted: kernel.counted.clone().map(|key| (key, control[count])),
                discarded: kernel.discarded,
                touched: kernel.touched.clone(),
                reads: kernel.reads,
                put: kernel.put.clone(),
                control: control.clone(),
            }
        })
    }
}

/// Indexes of the words that no way leads to.
fn unreachable(code: &Code) -> Vec<usize> {
    const JUMPS: u64 = 0x05;
    const JUMP: u64 = 0x05;
    const CALL: u64 = 0x85;
    const EXIT: u64 = 0x95;
    const WIDE: u64 = 0x18;
    const LOCAL: u64 = 1;
    const FUNCTION: u64 = 4;
    let mut reached = vec![false; code.words.len()];
    let mut ways = vec![0];
    while let Some(at) = ways.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        let word = code.words[at];
        let opcode = word & 0xff;
        let to = (at as i64 + 1 + i64::from((word >> 16) as i16)) as usize;
        let function = (at as i64 + 1 + i64::from((word >> 32) as i32)) as usize;
        match opcode {
            EXIT => {}
            JUMP => ways.push(to),
            WIDE => {
                reached[at + 1] = true;
                ways.push(at + 2);
                if word >> 12 & 0xf == FUNCTION {
                    ways.push(function);
                }
            }
            CALL if word >> 12 & 0xf == LOCAL => ways.extend([at + 1, function]),
            opcode if opcode & 0x07 == JUMPS && opcode != CALL => ways.extend([at + 1, to]),
            _ => ways.push(at + 1),
        }
    }
    (0..reached.len()).filter(|at| !reached[*at]).collect()
}

/// The program's bytes, with the address of the control words in place of their map.
fn bytes_of(code: &Code, control: u64) -> Vec<u8> {
    let mut words = code.words.clone();
    for &(at, map) in &code.maps {
        let value = match map {
            Map::Control | Map::FirstControl => control + (words[at + 1] >> 32),
            Map::Rings => RINGS,
            Map::Tracked => TRACKED,
            Map::StackRates => RATES,
            Map::HitGroups => COUNTS,
            Map::KeySlots => SLOTS,
            Map::Held
            | Map::GroupNumbers
            | Map::DurationBuckets
            | Map::Calls
            | Map::KnownFiles
            | Map::Groups
            | Map::GroupNames
            | Map::Executables
            | Map::WatchedInodes
            | Map::WatchedFiles
            | Map::Readers
            | Map::Executing => {
                unreachable!("not in programs of sites")
            }
            Map::Spans => SPAN_MAP,
            Map::SpanZeros => SPANS.with_borrow(|spans| spans.address(0)) + (words[at + 1] >> 32),
            Map::Stacks => unreachable!("no key of these tests is the stack"),
            Map::ThreadContexts => unreachable!("no layout of these tests has a thread context"),
            Map::WaitSums | Map::WaitGate => unreachable!("nor how long a thread has waited"),
        };
        words[at] = words[at] & 0xffff_ffff | value << 32;
        words[at + 1] = value & !0xffff_ffff;
    }
    // The interpreter has no atomic additions. Each adds 1 to a word that is 0: a store does the same.
    const ATOMIC_ADD: u64 = 0xdb;
    const STORE: u64 = 0x7b;
    const FETCHES: u64 = 1 << 32;
    const SET: u64 = 0xb7;
    for word in words.iter_mut().filter(|word| **word & 0xff == ATOMIC_ADD) {
        *word = match *word & FETCHES {
            0 => *word & !0xff | STORE,
            // No other program has the slot: the word was 0.
            _ => SET | (*word >> 4 & 0xf00),
        };
    }
    // The interpreter has no functions of the kernel, but helpers.
    const KERNEL_CALL: u64 = 2 << 12 | 0x85;
    for word in words
        .iter_mut()
        .filter(|word| **word & 0xf0ff == KERNEL_CALL)
    {
        *word &= !0xf000;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The made-up kernel's functions.
pub(super) const PREEMPTION: Preemption = Preemption {
    disable: 1001,
    enable: 1002,
};

/// While a program sleeps, another thread writes to its stack.
fn run_another_thread() {
    KERNEL.with_borrow(|kernel| {
        assert!(!kernel.has_disabled, "it must not sleep");
        for word in (kernel.frame.saturating_sub(MAIN_FRAME)..kernel.frame).step_by(8) {
            // SAFETY: the frame of the program is as long, and lives while it runs.
            unsafe { *(word as *mut u64) = STALE };
        }
    });
}

/// Enables or disables preemption.
fn preempt(enables: bool) -> u64 {
    KERNEL.with_borrow_mut(|kernel| {
        assert_eq!(kernel.has_disabled, enables);
        kernel.has_disabled = !enables;
    });
    STALE
}

type Function = fn(u64, u64, u64, u64, u64) -> u64;

const HELPERS: [(Helper, Function); 21] = [
    (Helper::MapUpdate, map_update),
    (Helper::MapDelete, map_delete),
    (Helper::RingOutput, put),
    (Helper::Comm, comm),
    (Helper::MapLookup, map_lookup),
    (Helper::KtimeNs, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.now)
    }),
    (Helper::CpuId, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.cpu)
    }),
    (Helper::PidTgid, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.pid_tgid)
    }),
    // The group is in the upper half.
    (Helper::UidGid, |_, _, _, _, _| 7 << 32 | UID),
    (Helper::CurrentTask, |_, _, _, _, _| TASK),
    (Helper::CurrentTaskBtf, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.task_at)
    }),
    (Helper::Loop, search),
    (Helper::RingDiscard, discard),
    (Helper::ReadUser, |to, size, from, _, _| {
        read_user(to, size, from, false)
    }),
    (Helper::CopyFromUser, |to, size, from, _, _| {
        run_another_thread();
        read_user(to, size, from, true)
    }),
    (Helper::ReadKernel, read_kernel),
    (Helper::ReadUserStr, read_string),
    (Helper::RingReserve, reserve),
    (Helper::RingSubmit, submit),
    (Helper::RingQuery, |ring, what, _, _, _| {
        assert_eq!((ring, what), (RING, 0), "the bytes that are in the ring");
        KERNEL.with_borrow(|kernel| kernel.filled)
    }),
    (Helper::AttachCookie, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.cookie)
    }),
];

/// The name of the thread.
pub(super) const COMM: &[u8] = b"postgres";

fn comm(to: u64, size: u64, _: u64, _: u64, _: u64) -> u64 {
    for at in 0..size {
        write(to + at, COMM.get(at as usize).copied().unwrap_or(0));
    }
    0
}

fn map_lookup(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    match map {
        RINGS => KERNEL.with_borrow_mut(|kernel| kernel.frame = key + 8),
        TRACKED => KERNEL.with_borrow_mut(|kernel| kernel.frame = key + 4),
        SLOTS => KERNEL.with_borrow_mut(|kernel| kernel.frame = key + 4),
        COUNTS => return count_of(key),
        SPAN_MAP => {
            KERNEL.with_borrow_mut(|kernel| kernel.frame = key + SPAN_KEY_AT);
            return SPANS.with_borrow(|spans| {
                let place = spans.places.get(&bytes_at(key, SPAN_KEY));
                place.map_or(0, |place| spans.address(*place))
            });
        }
        _ => {}
    }
    // SAFETY: programs pass the address of 4 bytes on their stack, which lives while they run.
    let key = unsafe { (key as *const u32).read_unaligned() };
    KERNEL.with_borrow(|kernel| match map {
        RINGS => {
            assert_eq!(u64::from(key), kernel.cpu);
            RING
        }
        RATES => kernel.rate_at,
        SLOTS => kernel.ring.as_ptr() as u64,
        TRACKED if kernel.tracked.contains(&key) => kernel.links_at,
        TRACKED => 0,
        _ => panic!("map {map} is not looked up"),
    })
}

/// Address of the count of the key at an address; 0 if the map does not have it.
fn count_of(key: u64) -> u64 {
    KERNEL.with_borrow(|kernel| match &kernel.counted {
        Some(counted) if *counted == bytes_at(key, kernel.key_size) => kernel.count_at,
        _ => 0,
    })
}

/// Adds the key at an address to a map: to that of counts, where its count is the word that is 0, or to that of open spans.
fn map_update(map: u64, key: u64, value: u64, flags: u64, _: u64) -> u64 {
    const NO_EXIST: u64 = 1;
    if map == SPAN_MAP {
        assert_eq!(flags, NO_EXIST);
        return SPANS.with_borrow_mut(|spans| {
            assert_eq!(value, spans.address(0));
            let Some(place) = spans.free.pop() else {
                return ENOMEM;
            };
            let known = spans.places.insert(bytes_at(key, SPAN_KEY), place);
            assert_eq!(known, None);
            spans.memory.copy_within(..spans.words, place);
            0
        });
    }
    KERNEL.with_borrow_mut(|kernel| match map {
        RATES => assert_eq!(flags, 0),
        COUNTS => {
            assert_eq!(flags, NO_EXIST);
            assert_eq!(bytes_at(value, 8), [0; 8]);
            let key = bytes_at(key, kernel.key_size);
            assert_eq!(kernel.counted.replace(key), None);
        }
        _ => panic!("map {map} is not changed"),
    });
    0
}

/// Removes an element from the map of open spans.
fn map_delete(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
    assert_eq!(map, SPAN_MAP);
    SPANS.with_borrow_mut(
        |spans| match spans.places.remove(&bytes_at(key, SPAN_KEY)) {
            Some(place) => {
                spans.free.push(place);
                0
            }
            None => ENOENT,
        },
    )
}

/// Copies a record to the ring.
fn put(map: u64, record: u64, size: u64, flags: u64, _: u64) -> u64 {
    assert_eq!((map, flags), (RING, 0));
    let record = bytes_at(record, size as usize);
    KERNEL.with_borrow_mut(|kernel| kernel.put.push(record));
    0
}

/// Bytes of the program's stack.
fn bytes_at(address: u64, len: usize) -> Vec<u8> {
    // SAFETY: programs pass addresses on their stack, which lives while they run; a key or value that is longer shows as a wrong key.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }.to_vec()
}

fn reserve(map: u64, size: u64, flags: u64, _: u64, _: u64) -> u64 {
    assert_eq!((map, flags), (RING, 0));
    KERNEL.with_borrow_mut(|kernel| {
        assert!(!kernel.is_reserved, "the kernel refuses such a program");
        kernel.reserved = size as usize;
        kernel.is_reserved = true;
        assert!(kernel.reserved <= 8 * kernel.ring.len());
        kernel.ring.as_ptr() as u64
    })
}

fn submit(record: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    KERNEL.with_borrow_mut(|kernel| {
        assert_eq!(record, kernel.ring.as_ptr() as u64);
        kernel.submitted = true;
        kernel.is_reserved = false;
    });
    0
}

fn discard(record: u64, flags: u64, _: u64, _: u64, _: u64) -> u64 {
    KERNEL.with_borrow_mut(|kernel| {
        assert_eq!((record, flags), (kernel.ring.as_ptr() as u64, 0));
        assert!(kernel.is_reserved);
        kernel.is_reserved = false;
        kernel.discarded += 1;
    });
    0
}

/// Does what the program's callbacks do, of `bpf_loop` and of `bpf_find_vma`.
fn search(tries: u64, _: u64, found: u64, flags: u64, _: u64) -> u64 {
    assert_eq!(flags, 0);
    // SAFETY: the program passes the address of its slots, and the one before them has the address to look for.
    let address = unsafe { ((found - 8) as *const u64).read_unaligned() };
    let busy = KERNEL.with_borrow(|kernel| u64::from(kernel.busy));
    let result = if busy < tries {
        find_vma(address, found)
    } else {
        EBUSY
    };
    write_word(found - 16, result);
    tries.min(busy + 1)
}

/// What `bpf_find_vma` returns; the members of the mapping that decide are at `found` then.
fn find_vma(address: u64, found: u64) -> u64 {
    let mapping = KERNEL.with_borrow(|kernel| {
        let mut mappings = kernel.mappings.iter();
        let other = mappings.find(|(range, _)| range.contains(&address));
        other.map_or(kernel.mapping, |(_, mapping)| *mapping)
    });
    let Some(words) = mapping else {
        return (-2_i64).cast_unsigned();
    };
    for (at, word) in (found..).step_by(8).zip(words) {
        write_word(at, word);
    }
    0
}

const ENOENT: u64 = (-2_i64).cast_unsigned();
const ENOMEM: u64 = (-12_i64).cast_unsigned();
const EBUSY: u64 = (-16_i64).cast_unsigned();
const EFAULT: u64 = (-14_i64).cast_unsigned();

/// Whether all of the range can be read; with `touch` what was absent comes.
fn readable(from: u64, size: u64, touch: bool) -> bool {
    KERNEL.with_borrow_mut(|kernel| {
        let end = from.wrapping_add(size);
        let overlaps = |range: &std::ops::Range<u64>| range.start < end && from < range.end;
        if kernel.forbidden.iter().any(overlaps) {
            return false;
        }
        if touch {
            kernel.absent.retain(|range| !overlaps(range));
        }
        !kernel.absent.iter().any(overlaps)
    })
}

fn read_user(to: u64, size: u64, from: u64, touch: bool) -> u64 {
    if touch {
        KERNEL.with_borrow_mut(|kernel| {
            assert!(
                !kernel.is_reserved,
                "it may sleep while a record is reserved"
            );
            kernel.touched.push(from);
        });
    }
    let can = readable(from, size, touch);
    for index in 0..size {
        let at = from.wrapping_add(index);
        let byte = KERNEL.with_borrow(|kernel| kernel.stored.get(&at).copied());
        let byte = byte.unwrap_or_else(|| byte_at(at));
        write(to + index, if can { byte } else { 0 });
    }
    KERNEL.with_borrow_mut(|kernel| kernel.reads += 1);
    if can { 0 } else { EFAULT }
}

/// Reads a string: memory has one wherever it is read as such, of as many letters as the address's lowest two bytes say.
fn read_string(to: u64, size: u64, from: u64, _: u64, _: u64) -> u64 {
    let len = (string_len(from) as u64).min(size - 1);
    if !readable(from, len + 1, false) {
        return EFAULT;
    }
    if len == 0 && KERNEL.with_borrow(|kernel| kernel.is_old) {
        write(to, 0);
        return 0;
    }
    for index in 0..len {
        write(to + index, b'a' + (index % 26) as u8);
    }
    write(to + len, 0);
    len + 1
}

/// Letters of the string at an address.
pub(super) const fn string_len(address: u64) -> usize {
    (address & 0x1ff) as usize
}

fn read_kernel(to: u64, size: u64, from: u64, _: u64, _: u64) -> u64 {
    for at in (0..size).step_by(8) {
        let word = KERNEL.with_borrow(|kernel| kernel.words.get(&(from + at)).copied());
        let word = word.unwrap_or_else(|| panic!("nothing is at {from:#x} of the kernel"));
        for (index, byte) in (at..size).zip(word.to_ne_bytes()) {
            write(to + index, byte);
        }
    }
    0
}

fn write_word(at: u64, word: u64) {
    for (at, byte) in (at..).zip(word.to_ne_bytes()) {
        write(at, byte);
    }
}

fn write(at: u64, byte: u8) {
    // SAFETY: programs pass addresses in their record or on their stack, both of which live while they run, and sizes
    // that stay inside: that is what the tests are about, and a mistake shows as a damaged record or a crash.
    unsafe { (at as *mut u8).write(byte) }
}
