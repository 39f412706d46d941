//! 64-bit little-endian PowerPC.
//!
//! perf's register bits: `arch/powerpc/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/powerpc/include/asm/ptrace.h`. Fetch arguments:
//! `regoffset_table`, `arch/powerpc/kernel/ptrace/ptrace.c`. DWARF's numbers and red zone: 64-Bit ELF V2 ABI, 2.4 and 2.2.3.3.
//! Addresses: `DEFAULT_MAP_WINDOW_USER64`, `arch/powerpc/include/asm/task_size_64.h`.

use super::architecture::{
    Architecture, ElfHeader, Family, Nops, alias, numbered, register, register_with,
};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static PPC64LE: Architecture = Architecture {
    name: "ppc64le",
    elf: ElfHeader {
        machine: 21,
        class64: true,
        big_endian: false,
    },
    rust_name: "powerpc64",
    kernel: Arch::Ppc64le,
    registers: &[
        &[register("nip", 8).perf(32).pt_regs(256).fetch("nip")],
        numbered!(
            "r", 8, perf 0, dwarf 0, pt_regs 0, fetch "gpr",
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]
        ),
        &[
            register_with!("ctr", 8, perf 35, dwarf 66, pt_regs 280, fetch "ctr"),
            register_with!("lr", 8, perf 36, dwarf 65, pt_regs 288, fetch "link"),
            register_with!("xer", 8, perf 37, dwarf 76, pt_regs 296, fetch "xer"),
            // DWARF has a number for each of its fields alone.
            register("cr", 4).perf(38).pt_regs(304).fetch("ccr"),
        ],
        numbered!("f", 8, dwarf 32, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
        numbered!("v", 16, dwarf 77, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
    ],
    aliases: &[alias("sp", "r1", 8, 0), alias("rtoc", "r2", 8, 0)],
    // Without -mregnames a register is its number.
    families: &[Family {
        prefix: "",
        suffix: "",
        numbers: 0..=31,
        register: "r",
        bytes: 8,
    }],
    stack_pointer: "r1",
    frame_pointer: "r31",
    return_register: Some("lr"),
    thread: None,
    red_zone: 512,
    address_bits: 47,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::Events,
    nops: Nops::Listed(&[&[0x00, 0x00, 0x00, 0x60]]),
    syntax: Syntax {
        register_prefix: RegisterPrefix::OptionalPercent,
        constant_prefix: Some("i"),
        memory: MemoryForm::Parentheses,
        bare_number: BareNumber::Register,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        flat_segments: &[],
        bare_pair: true,
    },
};
