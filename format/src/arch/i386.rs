//! 32-bit x86. perf's register bits are those of x86-64: the two share them.

use super::table::{Description, alias, numbered, register};
use super::x86_64::{ATT, NOPS, X87, high8, part8, part16};

pub(super) static I386: Description = Description {
    registers: &[
        &[
            register("eip", 4, Some(8)),
            register("eax", 4, Some(0)),
            register("ebx", 4, Some(1)),
            register("ecx", 4, Some(2)),
            register("edx", 4, Some(3)),
            register("esi", 4, Some(4)),
            register("edi", 4, Some(5)),
            register("ebp", 4, Some(6)),
            register("esp", 4, Some(7)),
        ],
        X87,
        numbered!("mm", 8, None, 0 1 2 3 4 5 6 7),
        numbered!("xmm", 16, None, 0 1 2 3 4 5 6 7),
        numbered!("ymm", 32, None, 0 1 2 3 4 5 6 7),
        numbered!("zmm", 64, None, 0 1 2 3 4 5 6 7),
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
    nops: NOPS,
    syntax: ATT,
};
