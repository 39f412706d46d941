//! 64-bit little-endian PowerPC. perf's register bits: `arch/powerpc/include/uapi/asm/perf_regs.h`.

use super::table::{Description, Family, alias, numbered, register};
use super::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

pub(super) static PPC64LE: Description = Description {
    registers: &[
        &[register("nip", 8, Some(32))],
        numbered!("r", 8, 0, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        &[
            register("ctr", 8, Some(35)),
            register("lr", 8, Some(36)),
            register("xer", 8, Some(37)),
            register("cr", 4, Some(38)),
        ],
        numbered!("f", 8, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        numbered!("v", 16, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
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
    nops: &[&[0x00, 0x00, 0x00, 0x60]],
    syntax: Syntax {
        register_prefix: RegisterPrefix::OptionalPercent,
        constant_prefix: Some("i"),
        memory: MemoryForm::Parentheses,
        bare_number: BareNumber::Register,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
        bare_pair: true,
    },
};
