//! What programs, their parts and the recorder agree on: registers, the context of a hit, its cookie, and the record that is written.
//!
//! | register | what is in it |
//! |---|---|
//! | `R0` | result of a helper |
//! | `R1` to `R5` | arguments of helpers, which do not preserve them |
//! | `R6` | the context: the user registers of the hit |
//! | `R7` | the reserved record, or the slot in which the key of a group is made |
//! | `R8` | a bit for each value that could not be read; then the end of the record, when callers are written |
//! | `R9` | the address that is read, or a value |
//! | `R10` | end of the 512 bytes of stack; their contents are in [`slots`](super::slots) |
//!
//! The context of a program on a uprobe is the user registers as the kernel saved them (`struct pt_regs`; on arm64 `struct user_pt_regs`, with which it
//! begins). Registers of a 32-bit program are zero-extended.
//!
//! Where the values of a hit are written is a [`Target`]: what is loaded ([`values`](super::program::values), [`string`](super::program::string)) does not depend on it. It is the raw part of a record, or of the key of
//! a group ([`aggregate`](super::aggregate)). Each target is laid out as a [`RawLayout`](usdtrec_format::RawLayout), with the room for the
//! strings after it.
//!
//! With a hit, a program gets the [`Cookie`] of the site (`bpf_get_attach_cookie`):
//!
//! | bits | |
//! |---|---|
//! | 0 to 29 | index of the sample id |
//! | 30 | whether the link is one for all processes, though recorded processes have links of their own |
//! | 32 to 47 | which of the program's variants is for the site |
//! | 48 to 63 | `common_type` of its raw part |
//!
//! The record that a program writes is a `PERF_RECORD_SAMPLE`, whole but for `common_pid`.
//!
//! | offset in the record | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 9, misc 2 (user), size |
//! | 8 | 8 | `IDENTIFIER`: the sample id |
//! | 16 | 8 | `IP` |
//! | 24 | 4 + 4 | process, thread |
//! | 32 | 8 | time, ns of `CLOCK_MONOTONIC` |
//! | 40 | 4 | CPU |
//! | 44 | 4 | the user plus 1 ([`Sample::user`](usdtrec_format::perf::Sample::user)) |
//! | 48 | 4 | size of the raw part |
//! | 52 | | raw part ([`RawLayout`]); its `common_type` is in the cookie, and in place of `common_pid` is the size of what the callers are found from, bytes |
//! | after it | | room for the strings, one of [`rooms`] for each |
//! | after them | | what the callers are found from, if they are recorded ([`stack`](super::program::stack)) |

use usdtrec_format::{Arch, RawLayout, RawLength, Register, Uprobes};
use usdtrec_kernel::bpf::insn::{Label, Reg};

/// Memory that values are written to: at an offset from the address in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The register, which calls preserve.
    pub base: Reg,
    /// Offset of the layout.
    pub offset: i16,
}

impl Target {
    /// The raw part of the record that is reserved.
    pub(super) const RECORD: Self = Self {
        base: Reg::R7,
        offset: RAW as i16,
    };

    /// Offset from the register of an offset in the layout.
    pub(super) const fn at(self, offset: u16) -> i16 {
        self.offset + offset.cast_signed()
    }
}

/// The processes or threads whose hits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RecordedProcesses {
    /// Hits of all processes.
    #[default]
    All,
    /// Hits of the processes in the map.
    Processes,
    /// Hits of the processes in the map: of those that have links of their own, by these links; of the others, by links for all processes.
    Apart,
    /// Hits of the threads in the map.
    Threads,
}

/// Value in the map for a process that has links of its own: a named one, or one that a recorded process started, from its first
/// instruction on.
pub(super) const LINKED: u32 = 1;
/// Value in the map for another process that a recorded one started. A larger value is the token of a process that is held and has got links.
pub(super) const FOLLOWED: u32 = 2;
/// The smallest token.
pub(super) const FIRST_TOKEN: u32 = 3;

/// What a program gets with a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    /// `common_type` of the raw part.
    pub event: u16,
    /// Which of the program's variants is for the site.
    pub variant: u16,
    /// Whether the link is one for all processes, though recorded processes have links of their own.
    pub is_everywhere: bool,
    /// Index of the sample id.
    pub index: u32,
}

impl Cookie {
    /// Bits of the index.
    pub(super) const INDEX_BITS: u32 = 30;
    /// The bit of links for all processes.
    pub(super) const EVERYWHERE: i32 = 1 << Self::INDEX_BITS;
    /// Where the variant begins.
    pub(super) const VARIANT_AT: u32 = 32;
    /// Where the event begins.
    pub(super) const EVENT_AT: u32 = 48;

    /// As a number.
    pub(super) const fn word(self) -> u64 {
        (self.event as u64) << Self::EVENT_AT
            | (self.variant as u64) << Self::VARIANT_AT
            | (self.is_everywhere as u64) << Self::INDEX_BITS
            | self.index as u64 & ((1 << Self::INDEX_BITS) - 1)
    }
}

/// Offset of the instruction pointer of a program of this architecture.
pub(super) fn instruction_pointer(arch: Arch) -> i16 {
    register_offset(arch, Register::PROGRAM_COUNTER).unwrap_or(0)
}

/// Offset of the instruction pointer in the registers of any program on this machine.
pub(super) fn own_instruction_pointer() -> i16 {
    Arch::host().map_or(0, instruction_pointer)
}

/// Offset of a register in the context; `None` if it is not there (`%xmm0`).
pub(super) fn register_offset(arch: Arch, register: Register) -> Option<i16> {
    i16::try_from(arch.pt_regs_offset(register)?).ok()
}

/// Whether programs of an architecture run on this machine and can be traced by BPF programs.
pub(super) fn runs_here(arch: Arch) -> bool {
    Arch::host().is_some_and(|host| arch.uprobes_on(host) == Uprobes::Programs)
}

/// Offset of the return addresses in the end of a record.
pub(super) const CHAIN: usize = 16;

/// What is known of the end of the record while the program is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndSize {
    /// Its size is in its slot; this is the largest.
    InSlot { largest: usize },
    /// Its size, and whether there is no larger one.
    Known { bytes: usize, is_largest: bool },
}

/// A function of the program that follows frame pointers, for ends of one size.
///
/// The verifier follows the loop frame by frame. It checks a function once, but code that is not in a function for each state of the rest of the
/// program: up to 700,000 instructions, which take some seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameFunction {
    pub(super) arch: Arch,
    pub(super) end: EndSize,
    pub(super) label: Label,
}

/// Offset of the raw part in a record.
pub(super) const RAW: usize = 52;

/// Offset of the size of what the callers are found from: that of `common_pid`, which the recorder writes instead.
pub(super) const END_SIZE: usize = RAW + 4;
/// Offset of the process.
pub(super) const PROCESS: usize = 24;
/// Offset of the thread.
pub(super) const THREAD: usize = 28;
/// Offset of the user plus 1.
pub(super) const USER: usize = 44;

/// Room for a string in a short record, bytes, with the NUL.
pub(super) const SHORT: usize = 64;
/// Maximum number of strings in a short record: a program with short records is twice as long.
const MAX_SHORT_STRINGS: usize = 4;

/// Room for the strings of a record in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// For each string, bytes.
    pub each: usize,
    /// Size of the record without what the callers are found from, bytes.
    pub record: usize,
}

/// The rooms that the records of a layout can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rooms {
    /// In a record that is tried first; `None` if that would save little.
    pub short: Option<Room>,
    /// The limit, one byte more, by which a longer string is recognized, and the NUL.
    pub whole: Room,
}

/// Room for each string of a layout. The size of a reservation is a constant, so a program first reserves room for short strings, and
/// starts again with the whole room if one is longer.
pub(super) fn rooms(layout: &RawLayout) -> Rooms {
    let whole = (usize::from(layout.string_limit) + 2).next_multiple_of(8);
    let always_long =
        |length| matches!(length, Some(RawLength::Fixed(bytes)) if bytes as usize > SHORT);
    let strings = layout.strings().count();
    let saves = whole >= 2 * SHORT
        && (1..=MAX_SHORT_STRINGS).contains(&strings)
        && !layout.strings().any(|string| always_long(string.length));
    let room = |each: usize| Room {
        each,
        record: RAW + usize::from(layout.size) + strings * each,
    };
    Rooms {
        short: saves.then(|| room(SHORT)),
        whole: room(whole),
    }
}

impl Rooms {
    /// The room in a record of this length; `None` if it is another length.
    pub(super) fn of_record(self, len: usize) -> Option<Room> {
        let mut rooms = self.short.into_iter().chain([self.whole]);
        rooms.find(|room| room.record == len)
    }
}
