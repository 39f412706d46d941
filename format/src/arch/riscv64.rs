//! 64-bit RISC-V.
//!
//! perf's register bits: `arch/riscv/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/riscv/include/asm/ptrace.h`. Fetch arguments:
//! `regoffset_table`, `arch/riscv/kernel/ptrace.c`. DWARF's numbers: RISC-V DWARF Specification. No red zone: RISC-V Calling
//! Conventions. Addresses: `Documentation/arch/riscv/vm-layout.rst`; with three levels of page tables 38 bits.

use super::architecture::{Alias, Architecture, ElfHeader, Nops, alias, numbered, register};
use super::known::{Arch, Uprobes};
use super::syntax::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

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
            register("t0", 8).perf(5).dwarf(5).pt_regs(40).fetch("t0"),
            register("t1", 8).perf(6).dwarf(6).pt_regs(48).fetch("t1"),
            register("t2", 8).perf(7).dwarf(7).pt_regs(56).fetch("t2"),
            register("s0", 8).perf(8).dwarf(8).pt_regs(64).fetch("s0"),
            register("s1", 8).perf(9).dwarf(9).pt_regs(72).fetch("s1"),
            register("a0", 8).perf(10).dwarf(10).pt_regs(80).fetch("a0"),
            register("a1", 8).perf(11).dwarf(11).pt_regs(88).fetch("a1"),
            register("a2", 8).perf(12).dwarf(12).pt_regs(96).fetch("a2"),
            register("a3", 8)
                .perf(13)
                .dwarf(13)
                .pt_regs(104)
                .fetch("a3"),
            register("a4", 8)
                .perf(14)
                .dwarf(14)
                .pt_regs(112)
                .fetch("a4"),
            register("a5", 8)
                .perf(15)
                .dwarf(15)
                .pt_regs(120)
                .fetch("a5"),
            register("a6", 8)
                .perf(16)
                .dwarf(16)
                .pt_regs(128)
                .fetch("a6"),
            register("a7", 8)
                .perf(17)
                .dwarf(17)
                .pt_regs(136)
                .fetch("a7"),
            register("s2", 8)
                .perf(18)
                .dwarf(18)
                .pt_regs(144)
                .fetch("s2"),
            register("s3", 8)
                .perf(19)
                .dwarf(19)
                .pt_regs(152)
                .fetch("s3"),
            register("s4", 8)
                .perf(20)
                .dwarf(20)
                .pt_regs(160)
                .fetch("s4"),
            register("s5", 8)
                .perf(21)
                .dwarf(21)
                .pt_regs(168)
                .fetch("s5"),
            register("s6", 8)
                .perf(22)
                .dwarf(22)
                .pt_regs(176)
                .fetch("s6"),
            register("s7", 8)
                .perf(23)
                .dwarf(23)
                .pt_regs(184)
                .fetch("s7"),
            register("s8", 8)
                .perf(24)
                .dwarf(24)
                .pt_regs(192)
                .fetch("s8"),
            register("s9", 8)
                .perf(25)
                .dwarf(25)
                .pt_regs(200)
                .fetch("s9"),
            register("s10", 8)
                .perf(26)
                .dwarf(26)
                .pt_regs(208)
                .fetch("s10"),
            register("s11", 8)
                .perf(27)
                .dwarf(27)
                .pt_regs(216)
                .fetch("s11"),
            register("t3", 8)
                .perf(28)
                .dwarf(28)
                .pt_regs(224)
                .fetch("t3"),
            register("t4", 8)
                .perf(29)
                .dwarf(29)
                .pt_regs(232)
                .fetch("t4"),
            register("t5", 8)
                .perf(30)
                .dwarf(30)
                .pt_regs(240)
                .fetch("t5"),
            register("t6", 8)
                .perf(31)
                .dwarf(31)
                .pt_regs(248)
                .fetch("t6"),
        ],
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

/// Numeric names, in the order of their numbers.
const ALIASES: &[Alias] = &[
    alias("fp", "s0", 8, 0),
    alias("x0", "zero", 8, 0),
    alias("x1", "ra", 8, 0),
    alias("x2", "sp", 8, 0),
    alias("x3", "gp", 8, 0),
    alias("x4", "tp", 8, 0),
    alias("x5", "t0", 8, 0),
    alias("x6", "t1", 8, 0),
    alias("x7", "t2", 8, 0),
    alias("x8", "s0", 8, 0),
    alias("x9", "s1", 8, 0),
    alias("x10", "a0", 8, 0),
    alias("x11", "a1", 8, 0),
    alias("x12", "a2", 8, 0),
    alias("x13", "a3", 8, 0),
    alias("x14", "a4", 8, 0),
    alias("x15", "a5", 8, 0),
    alias("x16", "a6", 8, 0),
    alias("x17", "a7", 8, 0),
    alias("x18", "s2", 8, 0),
    alias("x19", "s3", 8, 0),
    alias("x20", "s4", 8, 0),
    alias("x21", "s5", 8, 0),
    alias("x22", "s6", 8, 0),
    alias("x23", "s7", 8, 0),
    alias("x24", "s8", 8, 0),
    alias("x25", "s9", 8, 0),
    alias("x26", "s10", 8, 0),
    alias("x27", "s11", 8, 0),
    alias("x28", "t3", 8, 0),
    alias("x29", "t4", 8, 0),
    alias("x30", "t5", 8, 0),
    alias("x31", "t6", 8, 0),
];
