//! x86-64.
//!
//! perf's register bits: `arch/x86/include/uapi/asm/perf_regs.h`. `struct pt_regs`: `arch/x86/include/asm/ptrace.h`. Fetch arguments:
//! `regoffset_table`, `arch/x86/kernel/ptrace.c`. DWARF's numbers and red zone: System V ABI, AMD64 supplement, 3.6.2 and 3.2.2.
//! Addresses: `Documentation/arch/x86/x86_64/mm.rst`; with five levels of page tables a program may ask for 56 bits.

use super::architecture::{
    Alias, Architecture, ElfHeader, Family, Nops, RegisterInfo, ThreadStorage, alias, numbered,
    register, register_with,
};
use super::known::{Arch, BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax, Uprobes};

pub(super) static X86_64: Architecture = Architecture {
    name: "x86_64",
    elf: ElfHeader {
        machine: 62,
        class64: true,
        big_endian: false,
    },
    rust_name: "x86_64",
    kernel: Arch::X86_64,
    registers: &[
        &[
            // DWARF has the column of the return address for it, which is no register.
            register("rip", 8).perf(8).pt_regs(128).fetch("ip"),
            register("rax", 8).perf(0).dwarf(0).pt_regs(80).fetch("ax"),
            register("rbx", 8).perf(1).dwarf(3).pt_regs(40).fetch("bx"),
            register("rcx", 8).perf(2).dwarf(2).pt_regs(88).fetch("cx"),
            register("rdx", 8).perf(3).dwarf(1).pt_regs(96).fetch("dx"),
            register("rsi", 8).perf(4).dwarf(4).pt_regs(104).fetch("si"),
            register("rdi", 8).perf(5).dwarf(5).pt_regs(112).fetch("di"),
            register("rbp", 8).perf(6).dwarf(6).pt_regs(32).fetch("bp"),
            register("rsp", 8).perf(7).dwarf(7).pt_regs(152).fetch("sp"),
            register("r8", 8).perf(16).dwarf(8).pt_regs(72).fetch("r8"),
            register("r9", 8).perf(17).dwarf(9).pt_regs(64).fetch("r9"),
            register_with!("r10", 8, perf 18, dwarf 10, pt_regs 56, fetch "r10"),
            register_with!("r11", 8, perf 19, dwarf 11, pt_regs 48, fetch "r11"),
            register_with!("r12", 8, perf 20, dwarf 12, pt_regs 24, fetch "r12"),
            register_with!("r13", 8, perf 21, dwarf 13, pt_regs 16, fetch "r13"),
            register_with!("r14", 8, perf 22, dwarf 14, pt_regs 8, fetch "r14"),
            register_with!("r15", 8, perf 23, dwarf 15, pt_regs 0, fetch "r15"),
        ],
        APX,
        numbered!("st(" ")", 10, dwarf 33, [0 1 2 3 4 5 6 7]),
        numbered!("mm", 8, dwarf 41, [0 1 2 3 4 5 6 7]),
        numbered!("xmm", 16, dwarf 17, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]),
        numbered!("xmm", 16, dwarf 51, [16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
        numbered!("ymm", 32, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
        numbered!("zmm", 64, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]),
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
    return_register: None,
    thread: Some(ThreadStorage {
        segment: "fs",
        relocation: "tpoff",
    }),
    red_zone: 128,
    address_bits: 47,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::Programs,
    nops: Nops::X86,
    syntax: ATT,
};

/// The extended registers of APX, which the kernel does not provide.
const APX: &[RegisterInfo] =
    numbered!("r", 8, dwarf 114, [16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31]);

/// AT&T syntax, for both x86.
pub(super) const ATT: Syntax = Syntax {
    register_prefix: RegisterPrefix::Percent,
    constant_prefix: Some("$"),
    memory: MemoryForm::Parentheses,
    bare_number: BareNumber::Address,
    bare_symbol: BareSymbol::Memory,
    segments: &["fs", "gs"],
    // 0 in 64-bit mode (Intel's manual, volume 1, 3.4.2.1), and for 32-bit programs by the kernel (arch/x86/kernel/cpu/common.c, gdt_page).
    flat_segments: &["cs", "ds", "es", "ss"],
    bare_pair: false,
};

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
