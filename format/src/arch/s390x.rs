//! 64-bit IBM Z.
//!
//! perf's register bits: `arch/s390/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/s390/include/asm/ptrace.h`. Fetch arguments:
//! `regs_query_register_offset`, `arch/s390/kernel/ptrace.c`. DWARF's numbers: ELF Application Binary Interface s390x Supplement, 1.3.1.1;
//! a vector register has that of the floating-point register in it. Addresses: `_REGION2_SIZE`, `arch/s390/include/asm/pgtable.h`; the
//! kernel uses more bits if they do not suffice.

use super::architecture::{Architecture, ElfHeader, Nops, numbered, register};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static S390X: Architecture = Architecture {
    name: "s390x",
    elf: ElfHeader {
        machine: 22,
        class64: true,
        big_endian: true,
    },
    rust_name: "s390x",
    kernel: Arch::S390x,
    registers: &[
        &[register("pc", 8).perf(33).dwarf(65).pt_regs(16)],
        numbered!(
            "r", 8, perf 0, dwarf 0, pt_regs 24, fetch "r",
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]
        ),
        &[
            register("f0", 8).perf(16).dwarf(16),
            register("f1", 8).perf(17).dwarf(20),
            register("f2", 8).perf(18).dwarf(17),
            register("f3", 8).perf(19).dwarf(21),
            register("f4", 8).perf(20).dwarf(18),
            register("f5", 8).perf(21).dwarf(22),
            register("f6", 8).perf(22).dwarf(19),
            register("f7", 8).perf(23).dwarf(23),
            register("f8", 8).perf(24).dwarf(24),
            register("f9", 8).perf(25).dwarf(28),
            register("f10", 8).perf(26).dwarf(25),
            register("f11", 8).perf(27).dwarf(29),
            register("f12", 8).perf(28).dwarf(26),
            register("f13", 8).perf(29).dwarf(30),
            register("f14", 8).perf(30).dwarf(27),
            register("f15", 8).perf(31).dwarf(31),
        ],
        numbered!("a", 4, dwarf 48, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]),
        numbered!("v", 16, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
    ],
    aliases: &[],
    families: &[],
    stack_pointer: "r15",
    frame_pointer: "r11",
    return_register: Some("r14"),
    thread: None,
    red_zone: 0,
    address_bits: 42,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::Events,
    nops: Nops::Listed(&[
        &[0x47, 0x00, 0x00, 0x00],
        &[0x07, 0x00],
        &[0xc0, 0x04, 0x00, 0x00, 0x00, 0x00],
    ]),
    syntax: Syntax {
        register_prefix: RegisterPrefix::Percent,
        constant_prefix: None,
        memory: MemoryForm::Parentheses,
        bare_number: BareNumber::Constant,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        flat_segments: &[],
        bare_pair: false,
    },
};
