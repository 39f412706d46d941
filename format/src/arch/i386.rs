//! 32-bit x86, under a 64-bit kernel: perf's register bits, `struct pt_regs` and the names in fetch arguments are those of
//! x86-64. DWARF's numbers: System V ABI, Intel386 supplement, 2.4.2.

use super::architecture::{
    Architecture, ElfHeader, Nops, ThreadStorage, alias, numbered, register,
};
use super::known::{Arch, Uprobes};
use super::x86_64::{ATT, high8, part8, part16};

pub(super) static I386: Architecture = Architecture {
    name: "i386",
    elf: ElfHeader {
        machine: 3,
        class64: false,
        big_endian: false,
    },
    rust_name: "x86",
    kernel: Arch::X86_64,
    registers: &[
        &[
            register("eip", 4).perf(8).pt_regs(128).fetch("ip"),
            register("eax", 4).perf(0).dwarf(0).pt_regs(80).fetch("ax"),
            register("ebx", 4).perf(1).dwarf(3).pt_regs(40).fetch("bx"),
            register("ecx", 4).perf(2).dwarf(1).pt_regs(88).fetch("cx"),
            register("edx", 4).perf(3).dwarf(2).pt_regs(96).fetch("dx"),
            register("esi", 4).perf(4).dwarf(6).pt_regs(104).fetch("si"),
            register("edi", 4).perf(5).dwarf(7).pt_regs(112).fetch("di"),
            register("ebp", 4).perf(6).dwarf(5).pt_regs(32).fetch("bp"),
            register("esp", 4).perf(7).dwarf(4).pt_regs(152).fetch("sp"),
        ],
        numbered!("st(" ")", 10, dwarf 11, [0 1 2 3 4 5 6 7]),
        numbered!("mm", 8, dwarf 29, [0 1 2 3 4 5 6 7]),
        numbered!("xmm", 16, dwarf 21, [0 1 2 3 4 5 6 7]),
        numbered!("ymm", 32, [0 1 2 3 4 5 6 7]),
        numbered!("zmm", 64, [0 1 2 3 4 5 6 7]),
    ],
    aliases: &[
        part16("ax", "eax"),
        part16("bx", "ebx"),
        part16("cx", "ecx"),
        part16("dx", "edx"),
        part16("si", "esi"),
        part16("di", "edi"),
        part16("bp", "ebp"),
        part16("sp", "esp"),
        part8("al", "eax"),
        part8("bl", "ebx"),
        part8("cl", "ecx"),
        part8("dl", "edx"),
        high8("ah", "eax"),
        high8("bh", "ebx"),
        high8("ch", "ecx"),
        high8("dh", "edx"),
        alias("st", "st(0)", 10, 0),
    ],
    families: &[],
    stack_pointer: "esp",
    frame_pointer: "ebp",
    return_register: None,
    thread: Some(ThreadStorage {
        segment: "gs",
        relocation: "ntpoff",
    }),
    red_zone: 0,
    address_bits: 32,
    pointer_authentication: None,
    top_byte_ignored: false,
    uprobes: Uprobes::Programs,
    nops: Nops::X86,
    syntax: ATT,
};
