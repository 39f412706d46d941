//! 32-bit Arm. perf's names for 11 to 15 are the ones that compilers write.
//!
//! perf's register bits: `arch/arm/include/uapi/asm/perf_regs.h`. `struct pt_regs` of a 64-bit kernel: `compat_usr`,
//! `arch/arm64/include/asm/ptrace.h`. Fetch arguments of a 32-bit kernel: `regoffset_table`, `arch/arm/kernel/ptrace.c`. DWARF's numbers:
//! DWARF for the Arm Architecture, 4.1. No red zone: Procedure Call Standard, 6.2.1. Uprobes: `arch_uprobe_analyze_insn`,
//! `arch/arm64/kernel/probes/uprobes.c`, refuses 32-bit programs (`EOPNOTSUPP`); if they start later, nothing says so.

use super::architecture::{
    Architecture, ElfHeader, Nops, alias, numbered, register, register_with,
};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static ARM: Architecture = Architecture {
    name: "arm",
    elf: ElfHeader {
        machine: 40,
        class64: false,
        big_endian: false,
    },
    rust_name: "arm",
    kernel: Arch::Aarch64,
    registers: &[
        &[register_with!("pc", 4, perf 15, dwarf 15, pt_regs 256, fetch "pc")],
        numbered!("r", 4, perf 0, dwarf 0, pt_regs 0, fetch "r", [0 1 2 3 4 5 6 7 8 9 10]),
        &[
            register("fp", 4).perf(11).dwarf(11).pt_regs(88).fetch("fp"),
            register("ip", 4).perf(12).dwarf(12).pt_regs(96).fetch("ip"),
            register_with!("sp", 4, perf 13, dwarf 13, pt_regs 104, fetch "sp"),
            register_with!("lr", 4, perf 14, dwarf 14, pt_regs 112, fetch "lr"),
        ],
        numbered!("d", 8, dwarf 256, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
        // Of two numberings the older is not used any more, and the newer has none.
        numbered!("s", 4, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
        numbered!("q", 16, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]),
    ],
    aliases: &[
        alias("r11", "fp", 4, 0),
        alias("r12", "ip", 4, 0),
        alias("r13", "sp", 4, 0),
        alias("r14", "lr", 4, 0),
        alias("r15", "pc", 4, 0),
        alias("sb", "r9", 4, 0),
        alias("sl", "r10", 4, 0),
    ],
    families: &[],
    stack_pointer: "sp",
    // Code in Thumb state uses r7 instead; a note does not say which state it is in.
    frame_pointer: "fp",
    return_register: Some("lr"),
    thread: None,
    red_zone: 0,
    address_bits: 32,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::None,
    nops: Nops::Listed(&[
        // Thumb: nop, nop.w, mov r8, r8
        &[0x00, 0xbf],
        &[0xaf, 0xf3, 0x00, 0x80],
        &[0xc0, 0x46],
        // Arm: nop, mov r0, r0
        &[0x00, 0xf0, 0x20, 0xe3],
        &[0x00, 0x00, 0xa0, 0xe1],
    ]),
    syntax: Syntax {
        register_prefix: RegisterPrefix::None,
        constant_prefix: Some("#"),
        memory: MemoryForm::Brackets,
        bare_number: BareNumber::Address,
        // clang writes `gbla` where gcc writes `#gbla`.
        bare_symbol: BareSymbol::Address,
        segments: &[],
        flat_segments: &[],
        bare_pair: false,
    },
};
