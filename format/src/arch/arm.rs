//! 32-bit Arm. perf's register bits: `arch/arm/include/uapi/asm/perf_regs.h`; its names for 11 to 15
//! are the ones that compilers write.

use super::table::{Description, alias, numbered, register};
use super::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};

pub(super) static ARM: Description = Description {
    registers: &[
        &[register("pc", 4, Some(15))],
        numbered!("r", 4, 0, 0 1 2 3 4 5 6 7 8 9 10),
        &[
            register("fp", 4, Some(11)),
            register("ip", 4, Some(12)),
            register("sp", 4, Some(13)),
            register("lr", 4, Some(14)),
        ],
        numbered!("d", 8, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        numbered!("s", 4, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
        numbered!("q", 16, None, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
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
    nops: &[
        // Thumb: nop, nop.w, mov r8, r8
        &[0x00, 0xbf],
        &[0xaf, 0xf3, 0x00, 0x80],
        &[0xc0, 0x46],
        // Arm: nop, mov r0, r0
        &[0x00, 0xf0, 0x20, 0xe3],
        &[0x00, 0x00, 0xa0, 0xe1],
    ],
    syntax: Syntax {
        register_prefix: RegisterPrefix::None,
        constant_prefix: Some("#"),
        memory: MemoryForm::Brackets,
        bare_number: BareNumber::Address,
        // clang writes `gbla` where gcc writes `#gbla`.
        bare_symbol: BareSymbol::Address,
        segments: &[],
        bare_pair: false,
    },
};
