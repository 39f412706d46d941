//! x86-64. perf's register bits: `arch/x86/include/uapi/asm/perf_regs.h`.

use super::table::{Alias, Description, Family, RegisterInfo, alias, numbered, register};
use super::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

pub(super) static X86_64: Description = Description {
    registers: &[
        &[
            register("rip", 8, Some(8)),
            register("rax", 8, Some(0)),
            register("rbx", 8, Some(1)),
            register("rcx", 8, Some(2)),
            register("rdx", 8, Some(3)),
            register("rsi", 8, Some(4)),
            register("rdi", 8, Some(5)),
            register("rbp", 8, Some(6)),
            register("rsp", 8, Some(7)),
        ],
        numbered!("r", 8, 8, 8 9 10 11 12 13 14 15),
        APX,
        X87,
        numbered!("mm", 8, None, 0 1 2 3 4 5 6 7),
        numbered!("xmm", 16, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        numbered!("ymm", 32, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        numbered!("zmm", 64, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
    ],
    aliases: &[
        part32("eax", "rax"),
        part32("ebx", "rbx"),
        part32("ecx", "rcx"),
        part32("edx", "rdx"),
        part32("esi", "rsi"),
        part32("edi", "rdi"),
        part32("ebp", "rbp"),
        part32("esp", "rsp"),
        part32("eip", "rip"),
        part16("ax", "rax"),
        part16("bx", "rbx"),
        part16("cx", "rcx"),
        part16("dx", "rdx"),
        part16("si", "rsi"),
        part16("di", "rdi"),
        part16("bp", "rbp"),
        part16("sp", "rsp"),
        part8("al", "rax"),
        part8("bl", "rbx"),
        part8("cl", "rcx"),
        part8("dl", "rdx"),
        part8("sil", "rsi"),
        part8("dil", "rdi"),
        part8("bpl", "rbp"),
        part8("spl", "rsp"),
        high8("ah", "rax"),
        high8("bh", "rbx"),
        high8("ch", "rcx"),
        high8("dh", "rdx"),
        alias("st", "st(0)", 10, 0),
    ],
    families: &[
        numbered_part("d", 4),
        numbered_part("w", 2),
        numbered_part("b", 1),
        // Intel's spelling of the low byte.
        numbered_part("l", 1),
    ],
    stack_pointer: "rsp",
    frame_pointer: "rbp",
    nops: NOPS,
    syntax: ATT,
};

/// The extended registers of APX, which perf does not sample.
const APX: &[RegisterInfo] =
    numbered!("r", 8, None, 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);

/// The x87 stack, for both x86.
pub(super) const X87: &[RegisterInfo] = &[
    register("st(0)", 10, None),
    register("st(1)", 10, None),
    register("st(2)", 10, None),
    register("st(3)", 10, None),
    register("st(4)", 10, None),
    register("st(5)", 10, None),
    register("st(6)", 10, None),
    register("st(7)", 10, None),
];

/// AT&T syntax, for both x86.
pub(super) const ATT: Syntax = Syntax {
    register_prefix: RegisterPrefix::Percent,
    constant_prefix: Some("$"),
    memory: MemoryForm::Parentheses,
    bare_number: BareNumber::Address,
    bare_symbol: BareSymbol::Memory,
    segments: &["fs", "gs", "cs", "ds", "es", "ss"],
    bare_pair: false,
};

/// `nop` in its recommended lengths, for both x86 (Intel's manual, NOP): `sys/sdt.h` writes the first, and libbpf's usdt.h
/// the first followed by the fifth.
pub(super) const NOPS: &[&[u8]] = &[
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// The low 4 bytes of a register.
const fn part32(name: &'static str, whole: &'static str) -> Alias {
    alias(name, whole, 4, 0)
}

/// The low 2 bytes of a register.
pub(super) const fn part16(name: &'static str, whole: &'static str) -> Alias {
    alias(name, whole, 2, 0)
}

/// The low byte of a register.
pub(super) const fn part8(name: &'static str, whole: &'static str) -> Alias {
    alias(name, whole, 1, 0)
}

/// The second byte of a register.
pub(super) const fn high8(name: &'static str, whole: &'static str) -> Alias {
    alias(name, whole, 1, 8)
}

/// Parts of the numbered registers.
const fn numbered_part(suffix: &'static str, bytes: u8) -> Family {
    Family {
        prefix: "r",
        suffix,
        numbers: 8..=31,
        register: "r",
        bytes,
    }
}
