//! The description of a machine architecture: one static table for each, in the architecture's file.

use std::ops::RangeInclusive;

use super::known::{Arch, Syntax, Uprobes};

/// The description of an architecture.
pub(crate) struct Architecture {
    /// Its name in this crate and in what it writes.
    pub(crate) name: &'static str,
    /// How ELF files name it.
    pub(crate) elf: ElfHeader,
    /// How Rust names it (`std::env::consts::ARCH`).
    pub(crate) rust_name: &'static str,
    /// The architecture of the 64-bit kernel that runs its programs: its own for a 64-bit architecture.
    pub(crate) kernel: Arch,
    /// Full-width registers, in groups. The very first is the program counter ([`super::Register::PROGRAM_COUNTER`]).
    pub(crate) registers: &'static [&'static [RegisterInfo]],
    /// Other names: of registers (`fp`) or of parts of them (`%ah`).
    pub(crate) aliases: &'static [Alias],
    /// Numbered other names (`w0` to `w30`).
    pub(crate) families: &'static [Family],
    /// The stack pointer's name.
    pub(crate) stack_pointer: &'static str,
    /// The frame pointer's name.
    pub(crate) frame_pointer: &'static str,
    /// The name of the register in which calls put the return address; `None` where they push it.
    pub(crate) return_register: Option<&'static str>,
    /// How thread-local storage is addressed, where operands can.
    pub(crate) thread: Option<ThreadStorage>,
    /// Bytes below the stack pointer that functions may use without moving it.
    pub(crate) red_zone: u16,
    /// Bits of a user-space address, unless a program asks the kernel for higher ones.
    pub(crate) address_bits: u8,
    /// The bits of a code pointer that hold its authentication code.
    pub(crate) pointer_authentication: Option<RangeInclusive<u8>>,
    /// Whether the kernel ignores the highest byte of a user-space address (tags of memory).
    pub(crate) top_byte_ignored: bool,
    /// How the 64-bit kernel that runs its programs can trace them.
    pub(crate) uprobes: Uprobes,
    /// Its instructions that do nothing.
    pub(crate) nops: Nops,
    /// How operands are written.
    pub(crate) syntax: Syntax,
}

/// The fields of an ELF header that identify the architecture.
#[derive(PartialEq, Eq)]
pub(crate) struct ElfHeader {
    /// `e_machine` (elf.h, `EM_*`).
    pub(crate) machine: u16,
    /// `ELFCLASS64`: pointers have 8 bytes, else 4.
    pub(crate) class64: bool,
    /// `ELFDATA2MSB`: the lowest address has the highest byte.
    pub(crate) big_endian: bool,
}

/// Instructions that do nothing.
pub(crate) enum Nops {
    /// These.
    Listed(&'static [&'static [u8]]),
    /// Nops of x86, which may have prefixes.
    X86,
}

/// How an operand addresses thread-local storage.
pub(crate) struct ThreadStorage {
    /// The segment register that holds the thread's base.
    pub(crate) segment: &'static str,
    /// The relocation of a symbol's offset from that base.
    pub(crate) relocation: &'static str,
}

/// A full-width register in all numberings.
#[derive(Clone, Copy)]
pub(crate) struct RegisterInfo {
    /// Name without prefix.
    pub(crate) name: &'static str,
    /// Width in bytes.
    pub(crate) bytes: u8,
    /// Bit in `PERF_SAMPLE_REGS_USER`'s mask.
    pub(crate) perf: Option<u8>,
    /// DWARF's number.
    pub(crate) dwarf: Option<u16>,
    /// Offset in the `struct pt_regs` of [`Architecture::kernel`].
    pub(crate) pt_regs: Option<u16>,
    /// The kernel's name in fetch arguments, without `%`.
    pub(crate) fetch: Option<&'static str>,
}

impl RegisterInfo {
    /// With its bit in `PERF_SAMPLE_REGS_USER`'s mask.
    pub(crate) const fn perf(mut self, bit: u8) -> Self {
        self.perf = Some(bit);
        self
    }

    /// With DWARF's number.
    pub(crate) const fn dwarf(mut self, number: u16) -> Self {
        self.dwarf = Some(number);
        self
    }

    /// With its offset in `struct pt_regs`.
    pub(crate) const fn pt_regs(mut self, offset: u16) -> Self {
        self.pt_regs = Some(offset);
        self
    }

    /// With the kernel's name in fetch arguments.
    pub(crate) const fn fetch(mut self, name: &'static str) -> Self {
        self.fetch = Some(name);
        self
    }
}

/// A name for a register or for `bytes` bytes of it from bit `shift` on.
pub(crate) struct Alias {
    pub(crate) name: &'static str,
    pub(crate) register: &'static str,
    pub(crate) bytes: u8,
    pub(crate) shift: u8,
}

/// Names `prefix``n``suffix` for the low `bytes` bytes of the registers `register``n`.
pub(crate) struct Family {
    pub(crate) prefix: &'static str,
    pub(crate) suffix: &'static str,
    pub(crate) numbers: RangeInclusive<u8>,
    pub(crate) register: &'static str,
    pub(crate) bytes: u8,
}

/// A register that has no number yet.
pub(crate) const fn register(name: &'static str, bytes: u8) -> RegisterInfo {
    RegisterInfo {
        name,
        bytes,
        perf: None,
        dwarf: None,
        pt_regs: None,
        fetch: None,
    }
}

/// An [`Alias`].
pub(crate) const fn alias(
    name: &'static str,
    register: &'static str,
    bytes: u8,
    shift: u8,
) -> Alias {
    Alias {
        name,
        register,
        bytes,
        shift,
    }
}

/// Numbered registers: the prefix of their names and a suffix if they have one, their width, then what is given for number 0 of perf's
/// bits, DWARF's numbers, `struct pt_regs` (of 8 bytes each) and the prefix of the kernel's names, then their numbers.
macro_rules! numbered {
    ($prefix:literal, $bytes:literal, [$($n:literal)*]) => {
        &[$($crate::arch::architecture::register(concat!($prefix, $n), $bytes)),*]
    };
    ($prefix:literal, $bytes:literal, dwarf $dwarf:literal, [$($n:literal)*]) => {
        &[$($crate::arch::architecture::register(concat!($prefix, $n), $bytes).dwarf($dwarf + $n)),*]
    };
    ($prefix:literal $suffix:literal, $bytes:literal, dwarf $dwarf:literal, [$($n:literal)*]) => {
        &[$($crate::arch::architecture::register(concat!($prefix, $n, $suffix), $bytes).dwarf($dwarf + $n)),*]
    };
    (
        $prefix:literal, $bytes:literal,
        perf $perf:literal, dwarf $dwarf:literal, pt_regs $offset:literal, fetch $fetch:literal,
        [$($n:literal)*]
    ) => {
        &[$(
            $crate::arch::architecture::register(concat!($prefix, $n), $bytes)
                .perf($perf + $n)
                .dwarf($dwarf + $n)
                .pt_regs($offset + 8 * $n)
                .fetch(concat!($fetch, $n))
        ),*]
    };
}
pub(crate) use numbered;

/// A register on one line where its calls would take several: its name, its width, then the calls.
macro_rules! register_with {
    ($name:literal, $bytes:literal $(, $call:ident $argument:literal)*) => {
        $crate::arch::architecture::register($name, $bytes)$(.$call($argument))*
    };
}
pub(crate) use register_with;
