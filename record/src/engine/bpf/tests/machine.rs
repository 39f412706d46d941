//! A machine for programs: an interpreter (`rbpf`) with registers, memory and a kernel that are made up.

use std::cell::RefCell;
use std::collections::HashSet;

use super::super::insn::{Code, Helper, Map};

/// What the kernel answers and was told. The interpreter's helpers are plain functions: they find it here.
#[derive(Debug, Default)]
struct Kernel {
    /// Where a record goes, 8-aligned.
    ring: Vec<u64>,
    reserved: usize,
    submitted: bool,
    cookie: u64,
    cpu: u64,
    pid_tgid: u64,
    tracked: HashSet<u32>,
    /// Addresses that cannot be read.
    forbidden: Vec<std::ops::Range<u64>>,
    /// Addresses that can be read only once they were touched.
    absent: Vec<std::ops::Range<u64>>,
}

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::new(Kernel::default());
}

/// Words of the control map.
const CONTROL: usize = 1024;
/// The time.
pub(super) const NOW: u64 = 987_654_321_000;
/// Bytes of `struct pt_regs`.
const CONTEXT: usize = 168;
/// What is in a record before the program writes it.
const STALE: u64 = 0xdddd_dddd_dddd_dddd;

/// Address of the made-up task, whose thread-local storage begins at [`THREAD`].
const TASK: u64 = 0xffff_8880_0000_0000;
pub(super) const THREAD: u64 = 0x7f00_0000_1000;

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
    pub(super) forbidden: Vec<std::ops::Range<u64>>,
    pub(super) absent: Vec<std::ops::Range<u64>>,
    pub(super) enabled: bool,
    /// Unreadable strings in a row and the time until which none is read, string by string.
    pub(super) habits: Vec<u64>,
}

impl Default for Hit {
    fn default() -> Self {
        Self {
            context: std::array::from_fn(|index| register_value(8 * index)),
            cookie: 0x2711_0000_0000_0042,
            cpu: 3,
            pid_tgid: 1234 << 32 | 1235,
            tracked: HashSet::new(),
            forbidden: Vec::new(),
            absent: Vec::new(),
            enabled: true,
            habits: Vec::new(),
        }
    }
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
        assert_eq!(
            unreachable(code),
            [0; 0],
            "the kernel refuses such a program"
        );
        KERNEL.with_borrow_mut(|kernel| {
            *kernel = Kernel {
                ring: vec![STALE; 1 << 14],
                cookie: self.cookie,
                cpu: self.cpu,
                pid_tgid: self.pid_tgid,
                tracked: self.tracked.clone(),
                forbidden: self.forbidden.clone(),
                absent: self.absent.clone(),
                ..Kernel::default()
            }
        });
        let mut control = vec![0_u64; CONTROL];
        control[0] = u64::from(self.enabled);
        control[2..2 + self.habits.len()].copy_from_slice(&self.habits);
        let program = bytes_of(code, control.as_ptr() as u64);
        let context: Vec<u8> = self
            .context
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let mut context = context;
        let mut machine = rbpf::EbpfVmRaw::new(None).unwrap();
        machine.set_verifier(|_| Ok(())).unwrap();
        machine.set_program(&program).unwrap();
        let ring = KERNEL.with_borrow(|kernel| kernel.ring.as_ptr() as u64);
        machine.register_allowed_memory(ring..ring + (8 << 14));
        let control_at = control.as_ptr() as u64;
        machine.register_allowed_memory(control_at..control_at + 8 * CONTROL as u64);
        for (helper, function) in HELPERS {
            machine.register_helper(helper as u32, function).unwrap();
        }
        assert_eq!(machine.execute_program(&mut context).unwrap(), 0);
        KERNEL.with_borrow(|kernel| {
            kernel.submitted.then(|| {
                let bytes: Vec<u8> = kernel
                    .ring
                    .iter()
                    .flat_map(|word| word.to_ne_bytes())
                    .collect();
                bytes[..kernel.reserved].to_vec()
            })
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
    let mut reached = vec![false; code.words.len()];
    let mut ways = vec![0];
    while let Some(at) = ways.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        let word = code.words[at];
        let opcode = word & 0xff;
        let to = (at as i64 + 1 + i64::from((word >> 16) as i16)) as usize;
        match opcode {
            EXIT => {}
            JUMP => ways.push(to),
            WIDE => {
                reached[at + 1] = true;
                ways.push(at + 2);
            }
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
            Map::Control => control + (words[at + 1] >> 32),
            Map::Ring => 1,
            Map::Tracked => 2,
            Map::Stopped => 3,
        };
        words[at] = words[at] & 0xffff_ffff | value << 32;
        words[at + 1] = value & !0xffff_ffff;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

type Function = fn(u64, u64, u64, u64, u64) -> u64;

const HELPERS: [(Helper, Function); 13] = [
    (Helper::Comm, comm),
    (Helper::MapLookup, map_lookup),
    (Helper::KtimeNs, |_, _, _, _, _| NOW),
    (Helper::CpuId, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.cpu)
    }),
    (Helper::PidTgid, |_, _, _, _, _| {
        KERNEL.with_borrow(|kernel| kernel.pid_tgid)
    }),
    (Helper::CurrentTask, |_, _, _, _, _| TASK),
    (Helper::ReadUser, |to, size, from, _, _| {
        read_user(to, size, from, false)
    }),
    (Helper::CopyFromUser, |to, size, from, _, _| {
        read_user(to, size, from, true)
    }),
    (Helper::ReadKernel, read_kernel),
    (Helper::ReadUserStr, read_string),
    (Helper::RingReserve, reserve),
    (Helper::RingSubmit, submit),
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
    assert_eq!(map, 2, "only the map of processes is looked up");
    // SAFETY: programs pass the address of 4 bytes on their stack, which lives while they run.
    let key = unsafe { (key as *const u32).read_unaligned() };
    KERNEL.with_borrow(|kernel| u64::from(kernel.tracked.contains(&key)))
}

fn reserve(map: u64, size: u64, flags: u64, _: u64, _: u64) -> u64 {
    assert_eq!((map, flags), (1, 0));
    KERNEL.with_borrow_mut(|kernel| {
        kernel.reserved = size as usize;
        assert!(kernel.reserved <= 8 * kernel.ring.len());
        kernel.ring.as_ptr() as u64
    })
}

fn submit(record: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    KERNEL.with_borrow_mut(|kernel| {
        assert_eq!(record, kernel.ring.as_ptr() as u64);
        kernel.submitted = true;
    });
    0
}

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
    let can = readable(from, size, touch);
    for index in 0..size {
        let byte = if can {
            byte_at(from.wrapping_add(index))
        } else {
            0
        };
        write(to + index, byte);
    }
    if can { 0 } else { EFAULT }
}

/// Reads a string: memory has one wherever it is read as such, of as many letters as the address's lowest two bytes say.
fn read_string(to: u64, size: u64, from: u64, _: u64, _: u64) -> u64 {
    let len = (string_len(from) as u64).min(size - 1);
    if !readable(from, len + 1, false) {
        return EFAULT;
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
    assert_eq!(
        (size, from),
        (8, TASK + 0x1490),
        "the base of the thread's storage"
    );
    for (index, byte) in (0..).zip(THREAD.to_ne_bytes()) {
        write(to + index, byte);
    }
    0
}

fn write(at: u64, byte: u8) {
    // SAFETY: programs pass addresses in their record or on their stack, both of which live while they run, and sizes
    // that stay inside: that is what the tests are about, and a mistake shows as a damaged record or a crash.
    unsafe { (at as *mut u8).write(byte) }
}
