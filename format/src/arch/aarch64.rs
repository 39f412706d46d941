//! 64-bit Arm.
//!
//! perf's register bits: `arch/arm64/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/arm64/include/asm/ptrace.h`. Fetch arguments:
//! `regoffset_table`, `arch/arm64/kernel/ptrace.c`. DWARF's numbers: DWARF for the Arm 64-bit Architecture, 4.1. No red zone:
//! Procedure Call Standard, 6.4.5. Addresses: `Documentation/arch/arm64/memory.rst`; a program may ask for 52 bits. Authentication:
//! `Documentation/arch/arm64/pointer-authentication.rst`, bits from those of an address up to 54. Tags:
//! `Documentation/arch/arm64/tagged-pointers.rst`.

use super::architecture::{
    Architecture, ElfHeader, Family, Nops, alias, numbered, register, register_with,
};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static AARCH64: Architecture = Architecture {
    name: "aarch64",
    elf: ElfHeader {
        machine: 183,
        class64: true,
        big_endian: false,
    },
    rust_name: "aarch64",
    kernel: Arch::Aarch64,
    registers: &[
        &[
            register_with!("pc", 8, perf 32, dwarf 32, pt_regs 256, fetch "pc"),
            register_with!("sp", 8, perf 31, dwarf 31, pt_regs 248, fetch "sp"),
        ],
        numbered!(
            "x", 8, perf 0, dwarf 0, pt_regs 0, fetch "x",
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30]
        ),
        &[register("xzr", 8)],
        numbered!("v", 16, dwarf 64, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
    ],
    aliases: &[
        alias("fp", "x29", 8, 0),
        alias("lr", "x30", 8, 0),
        // The encoding's name of the stack pointer where it is a base.
        alias("x31", "sp", 8, 0),
        alias("wsp", "sp", 4, 0),
        alias("wzr", "xzr", 4, 0),
    ],
    families: &[
        Family {
            prefix: "w",
            suffix: "",
            numbers: 0..=30,
            register: "x",
            bytes: 4,
        },
        vector("q", 16),
        vector("d", 8),
        vector("s", 4),
        vector("h", 2),
        vector("b", 1),
    ],
    stack_pointer: "sp",
    frame_pointer: "x29",
    return_register: Some("x30"),
    thread: None,
    red_zone: 0,
    address_bits: 48,
    pointer_authentication: Some(48..=54),
    top_byte_ignored: true,
    uprobes: Uprobes::Programs,
    nops: Nops::Listed(&[&[0x1f, 0x20, 0x03, 0xd5]]),
    syntax: Syntax {
        register_prefix: RegisterPrefix::None,
        constant_prefix: Some("#"),
        memory: MemoryForm::Brackets,
        bare_number: BareNumber::Constant,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        flat_segments: &[],
        bare_pair: false,
    },
};

/// The low bytes of the vector registers.
const fn vector(prefix: &'static str, bytes: u8) -> Family {
    Family {
        prefix,
        suffix: "",
        numbers: 0..=31,
        register: "v",
        bytes,
    }
}
