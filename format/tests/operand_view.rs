//! What operands say of themselves: words, registers, sizes.

use usdtrec_format::{Arch, Operand, Register, Value, parse_operands};

fn one(args: &str, arch: Arch) -> Operand {
    let mut operands = parse_operands(args, Some(arch));
    assert_eq!(operands.len(), 1, "{args}");
    operands.remove(0)
}

#[test]
fn operands_in_words() {
    let cases = [
        (Arch::X86_64, "-4@%ebx", "s32 in ebx"),
        (Arch::X86_64, "4@%r12", "u32 in r12"),
        (Arch::X86_64, "1@%r9b", "u8 in r9b"),
        (Arch::X86_64, "1@%ah", "u8 in ah"),
        (Arch::X86_64, "%ax", "u16 in ax, size not given"),
        (
            Arch::X86_64,
            "(%rdi)",
            "u64 in memory at rdi, size not given",
        ),
        (Arch::X86_64, "8f@%xmm0", "f64 in xmm0"),
        (Arch::X86_64, "12f@%st", "f96 in st(0)"),
        (Arch::X86_64, "8@-320(%rbp)", "u64 in memory at rbp-320"),
        (
            Arch::X86_64,
            "-2@4(%rcx,%rax,2)",
            "s16 in memory at rcx+rax*2+4",
        ),
        (Arch::X86_64, "-2@t(,%rax,2)", "s16 in memory at t+rax*2"),
        (
            Arch::X86_64,
            "-4@40+CheckpointStats(%rip)",
            "s32 in memory at CheckpointStats+40",
        ),
        (Arch::X86_64, "-4@table(%rax)", "s32 in memory at rax+table"),
        (
            Arch::X86_64,
            "8@arr@GOTPCREL(%rip)",
            "u64 address of arr, from its GOT slot",
        ),
        (
            Arch::X86_64,
            "-4@%fs:tlsd@tpoff",
            "s32 in thread-local memory at fs:tlsd",
        ),
        (
            Arch::X86_64,
            "4@%fs:0x10(%rax)",
            "u32 in thread-local memory at fs:rax+16",
        ),
        (
            Arch::X86_64,
            "8@%fs:0x28",
            "u64 in thread-local memory at fs:0x28",
        ),
        (Arch::X86_64, "8@$main", "u64 address main"),
        (Arch::X86_64, "-4@$-1", "s32 constant -1"),
        (Arch::X86_64, "4@$-1", "u32 constant 4294967295"),
        (Arch::X86_64, "1@$-6", "u8 constant 250"),
        (Arch::X86_64, "8@$-1", "u64 constant 18446744073709551615"),
        (Arch::X86_64, "8@$8|$4", "u64 constant 12"),
        (
            Arch::X86_64,
            "8@%rfoo",
            "not understood: x86_64 has no register \"%rfoo\"",
        ),
        (Arch::I386, "1@%edi", "u8 in edi"),
        (
            Arch::I386,
            "-8@%esi",
            "s64 in esi and a register that the note does not name",
        ),
        (Arch::I386, "%eax", "u32 in eax, size not given"),
        (
            Arch::Aarch64,
            "1@[x20, w21, sxtw]",
            "u8 in memory at x20+s32(x21)",
        ),
        (Arch::Aarch64, "4@w3", "u32 in w3"),
        (
            Arch::Aarch64,
            "4@[x4, #:tprel_lo12:tlsd]",
            "u32 in thread-local memory at tlsd",
        ),
        (Arch::Arm, "8f@#1.5e+0", "f64 constant 1.5"),
        (Arch::Ppc64le, "8@29", "u64 in r29"),
        // Register 0 as a base is the number 0.
        (Arch::Ppc64le, "8@16(0)", "u64 in memory at 0x10"),
        (Arch::Ppc64le, "8@0,9", "u64 in memory at r9"),
        (Arch::Ppc64le, "8@9,0", "u64 in memory at r9+r0"),
        (Arch::Riscv64, "-8@-24(s0)", "s64 in memory at s0-24"),
    ];
    for (arch, args, words) in cases {
        assert_eq!(one(args, arch).explain(arch), words, "{args}");
    }
}

#[test]
fn registers_are_those_that_the_value_depends_on() {
    let cases: [(Arch, &str, &[&str]); 13] = [
        (Arch::X86_64, "1@%ah", &["rax"]),
        (Arch::X86_64, "8@8(%rsp)", &["rsp"]),
        (Arch::X86_64, "8@(%rcx,%eax,2)", &["rcx", "rax"]),
        (Arch::X86_64, "8@t(,%rax,2)", &["rax"]),
        (Arch::X86_64, "8@table(%rax)", &["rax"]),
        (Arch::X86_64, "4@%fs:0x10(%rax)", &["rax"]),
        (Arch::X86_64, "8@mp_(%rip)", &[]),
        (Arch::X86_64, "8@arr@GOTPCREL(%rip)", &[]),
        (Arch::X86_64, "8@$5", &[]),
        (Arch::X86_64, "8@%rfoo", &[]),
        (Arch::I386, "4@t@GOTOFF(%ebx)", &[]),
        (Arch::Aarch64, "1@[x20, w21, sxtw]", &["x20", "x21"]),
        (Arch::Aarch64, "8@[x2, #:lo12:sym]", &[]),
    ];
    for (arch, args, names) in cases {
        let expected: Vec<Register> = names
            .iter()
            .filter_map(|name| arch.register(name))
            .collect();
        assert_eq!(expected.len(), names.len());
        let found: Vec<Register> = one(args, arch).registers().collect();
        assert_eq!(found, expected, "{args}");
    }
}

#[test]
fn a_missing_size_is_the_registers_or_a_pointers() {
    let cases = [
        (Arch::X86_64, "-2@%rax", 2, true),
        (Arch::X86_64, "%ah", 1, false),
        (Arch::X86_64, "%rdi", 8, false),
        (Arch::X86_64, "$-1", 8, false),
        (Arch::I386, "(%esp)", 4, false),
        (Arch::Arm, "r3", 4, false),
    ];
    for (arch, args, bytes, signed) in cases {
        let operand = one(args, arch);
        assert_eq!(
            (operand.bytes(arch), operand.is_signed()),
            (bytes, signed),
            "{args}"
        );
    }
}

#[test]
fn integers_are_cut_and_extended() {
    let cases = [
        (0x1234_56f0, 1, false, Value::Unsigned(0xf0)),
        (0x1234_56f0, 1, true, Value::Signed(-16)),
        (0xffff_ffff, 4, true, Value::Signed(-1)),
        (0xffff_ffff, 8, true, Value::Signed(0xffff_ffff)),
        (u64::MAX, 4, false, Value::Unsigned(0xffff_ffff)),
        (u64::MAX, 8, false, Value::Unsigned(u64::MAX)),
        (u64::MAX, 16, true, Value::Signed(-1)),
        (5, 3, false, Value::Unsigned(5)),
    ];
    for (bits, bytes, signed, value) in cases {
        assert_eq!(Value::integer(bits, bytes, signed), value);
    }
}
