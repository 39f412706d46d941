//! 64-bit RISC-V.
//!
//! perf's register bits: `arch/riscv/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/riscv/include/asm/ptrace.h`. Fetch arguments:
//! `regoffset_table`, `arch/riscv/kernel/ptrace.c`. DWARF's numbers: RISC-V DWARF Specification. No red zone: RISC-V Calling
//! Conventions. Addresses: `Documentation/arch/riscv/vm-layout.rst`; with three levels of page tables 38 bits.

use super::architecture::{Alias, Architecture, ElfHeader, Nops, alias, numbered, register};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static RISCV64: Architecture = Architecture {
    name: "riscv64",
    elf: ElfHeader {
        machine: 243,
        class64: true,
        big_endian: false,
    },
    rust_name: "riscv64",
    kernel: Arch::Riscv64,
    registers: &[
        &[
            register("pc", 8).perf(0).pt_regs(0).fetch("epc"),
            register("zero", 8).dwarf(0),
            register("ra", 8).perf(1).dwarf(1).pt_regs(8).fetch("ra"),
            register("sp", 8).perf(2).dwarf(2).pt_regs(16).fetch("sp"),
            register("gp", 8).perf(3).dwarf(3).pt_regs(24).fetch("gp"),
            register("tp", 8).perf(4).dwarf(4).pt_regs(32).fetch("tp"),
        ],
        numbered!("t", 8, perf 5, dwarf 5, pt_regs 40, fetch "t", [0 1 2]),
        numbered!("s", 8, perf 8, dwarf 8, pt_regs 64, fetch "s", [0 1]),
        numbered!("a", 8, perf 10, dwarf 10, pt_regs 80, fetch "a", [0 1 2 3 4 5 6 7]),
        numbered!("s", 8, perf 16, dwarf 16, pt_regs 128, fetch "s", [2 3 4 5 6 7 8 9 10 11]),
        numbered!("t", 8, perf 25, dwarf 25, pt_regs 200, fetch "t", [3 4 5 6]),
        numbered!("ft", 8, dwarf 32, [0 1 2 3 4 5 6 7]),
        numbered!("fs", 8, dwarf 40, [0 1]),
        numbered!("fa", 8, dwarf 42, [0 1 2 3 4 5 6 7]),
        numbered!("fs", 8, dwarf 48, [2 3 4 5 6 7 8 9 10 11]),
        numbered!("ft", 8, dwarf 52, [8 9 10 11]),
        numbered!("v", 16, dwarf 96, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
    ],
    aliases: ALIASES,
    families: &[],
    stack_pointer: "sp",
    frame_pointer: "s0",
    return_register: Some("ra"),
    thread: None,
    red_zone: 0,
    address_bits: 47,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::Events,
    nops: Nops::Listed(&[&[0x01, 0x00], &[0x13, 0x00, 0x00, 0x00]]),
    syntax: Syntax {
        register_prefix: RegisterPrefix::None,
        constant_prefix: None,
        memory: MemoryForm::Parentheses,
        bare_number: BareNumber::Constant,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        flat_segments: &[],
        bare_pair: false,
    },
};

/// Other names: the frame pointer's, then the numeric ones, by their numbers and the registers that they are.
macro_rules! names {
    ($($number:literal $register:literal)*) => {
        &[alias("fp", "s0", 8, 0), $(alias(concat!("x", $number), $register, 8, 0)),*]
    };
}

/// Numeric names, in the order of their numbers, after the frame pointer's.
const ALIASES: &[Alias] = names!(
    0 "zero" 1 "ra" 2 "sp" 3 "gp" 4 "tp" 5 "t0" 6 "t1" 7 "t2"
    8 "s0" 9 "s1" 10 "a0" 11 "a1" 12 "a2" 13 "a3" 14 "a4" 15 "a5"
    16 "a6" 17 "a7" 18 "s2" 19 "s3" 20 "s4" 21 "s5" 22 "s6" 23 "s7"
    24 "s8" 25 "s9" 26 "s10" 27 "s11" 28 "t3" 29 "t4" 30 "t5" 31 "t6"
);
