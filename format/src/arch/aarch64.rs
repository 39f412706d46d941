//! 64-bit Arm. perf's register bits: `arch/arm64/include/uapi/asm/perf_regs.h`.

use super::table::{Description, Family, alias, numbered, register};
use super::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

pub(super) static AARCH64: Description = Description {
    registers: &[
        &[register("pc", 8, Some(32)), register("sp", 8, Some(31))],
        numbered!("x", 8, 0, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30),
        &[register("xzr", 8, None)],
        numbered!("v", 16, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
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
    nops: &[&[0x1f, 0x20, 0x03, 0xd5]],
    syntax: Syntax {
        register_prefix: RegisterPrefix::None,
        constant_prefix: Some("#"),
        memory: MemoryForm::Brackets,
        bare_number: BareNumber::Constant,
        bare_symbol: BareSymbol::Unknown,
        segments: &[],
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
