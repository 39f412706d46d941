//! 64-bit IBM Z. perf's register bits: `arch/s390/include/uapi/asm/perf_regs.h`.

use super::table::{Description, numbered, register};
use super::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

pub(super) static S390X: Description = Description {
    registers: &[
        &[register("pc", 8, Some(33))],
        numbered!("r", 8, 0, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        numbered!("f", 8, 16, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        numbered!("a", 4, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        numbered!("v", 16, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
    ],
    aliases: &[],
    families: &[],
    stack_pointer: "r15",
    frame_pointer: "r11",
    nops: &[
        &[0x47, 0x00, 0x00, 0x00],
        &[0x07, 0x00],
        &[0xc0, 0x04, 0x00, 0x00, 0x00, 0x00],
    ],
    syntax: Syntax {
        register_prefix: RegisterPrefix::Percent,
        constant_prefix: None,
        memory: MemoryForm::Parentheses,
        bare_number: BareNumber::Constant,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        bare_pair: false,
    },
};
