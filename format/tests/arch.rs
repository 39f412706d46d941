//! The register tables against what perf and the ABIs say.

use std::collections::HashSet;

use usdtrec_format::{Arch, Register};

/// perf's names for the bits of `PERF_SAMPLE_REGS_USER`, in the order of the enumerations in the kernel's
/// `arch/*/include/uapi/asm/perf_regs.h`; a dash for those that are no operand's.
const PERF: [(Arch, &str); 7] = [
    (
        Arch::X86_64,
        "rax rbx rcx rdx rsi rdi rbp rsp rip - - - - - - - r8 r9 r10 r11 r12 r13 r14 r15",
    ),
    (Arch::I386, "eax ebx ecx edx esi edi ebp esp eip"),
    (
        Arch::Aarch64,
        "x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22 x23 x24 x25 x26 x27 x28 \
         x29 lr sp pc",
    ),
    (
        Arch::Arm,
        "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 fp ip sp lr pc",
    ),
    (
        Arch::Ppc64le,
        "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19 r20 r21 r22 r23 r24 r25 r26 r27 r28 \
         r29 r30 r31 nip - - ctr lr xer cr",
    ),
    (
        Arch::S390x,
        "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15 \
         - pc",
    ),
    (
        Arch::Riscv64,
        "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6",
    ),
];

/// All registers of an architecture.
fn registers(arch: Arch) -> impl Iterator<Item = Register> {
    (0..=u8::MAX)
        .map(Register)
        .filter(move |register| arch.register_bytes(*register) > 0)
}

#[test]
fn perf_bits_are_the_kernels() {
    for (arch, names) in PERF {
        let mut sampled = 0;
        for (bit, name) in (0_u8..)
            .zip(names.split_whitespace())
            .filter(|(_, name)| *name != "-")
        {
            let register = arch.register(name);
            assert_eq!(
                register.and_then(|register| arch.perf_register(register)),
                Some(bit),
                "{name}"
            );
            sampled += 1;
        }
        let all = registers(arch)
            .filter(|register| arch.perf_register(*register).is_some())
            .count();
        assert_eq!(all, sampled, "{}", arch.name());
    }
}

#[test]
fn names_are_unique_and_lead_back() {
    for arch in Arch::ALL {
        let mut names = HashSet::new();
        for register in registers(arch) {
            let name = arch.register_name(register);
            assert!(names.insert(name), "{} {name}", arch.name());
            assert_eq!(arch.register(name), Some(register));
        }
    }
}

#[test]
fn special_registers_are_the_abis() {
    let cases = [
        (Arch::X86_64, "rsp", "rbp", "rip"),
        (Arch::I386, "esp", "ebp", "eip"),
        (Arch::Aarch64, "sp", "x29", "pc"),
        (Arch::Arm, "sp", "fp", "pc"),
        (Arch::Ppc64le, "r1", "r31", "nip"),
        (Arch::S390x, "r15", "r11", "pc"),
        (Arch::Riscv64, "sp", "s0", "pc"),
    ];
    for (arch, stack, frame, counter) in cases {
        assert_eq!(arch.register_name(arch.stack_pointer()), stack);
        assert_eq!(
            arch.frame_pointer()
                .map(|register| arch.register_name(register)),
            Some(frame)
        );
        assert_eq!(arch.register_name(Register::PROGRAM_COUNTER), counter);
    }
}

#[test]
fn other_names_stand_for_whole_registers() {
    let cases = [
        (
            Arch::X86_64,
            "ah sil r8d r15b r31w eip st",
            "rax rsi r8 r15 r31 rip st(0)",
        ),
        (Arch::I386, "ah si dl st", "eax esi edx st(0)"),
        (
            Arch::Aarch64,
            "fp lr x31 w30 wsp wzr d31 s0 b7",
            "x29 x30 sp x30 sp xzr v31 v0 v7",
        ),
        (
            Arch::Arm,
            "r11 r12 r13 r14 r15 sb sl",
            "fp ip sp lr pc r9 r10",
        ),
        (Arch::Ppc64le, "0 31 sp rtoc", "r0 r31 r1 r2"),
        (Arch::Riscv64, "fp x0 x1 x8 x10 x31", "s0 zero ra s0 a0 t6"),
    ];
    for (arch, others, wholes) in cases {
        for (other, whole) in others.split(' ').zip(wholes.split(' ')) {
            assert!(arch.register(other).is_some(), "{} {other}", arch.name());
            assert_eq!(
                arch.register(other),
                arch.register(whole),
                "{} {other}",
                arch.name()
            );
        }
    }
}

#[test]
fn nothing_is_known_of_registers_that_do_not_exist() {
    for arch in Arch::ALL {
        let none = Register(u8::MAX);
        assert_eq!(
            (arch.register_bytes(none), arch.perf_register(none)),
            (0, None)
        );
        assert_eq!(arch.register("nonsense"), None);
        assert!(!arch.reads_as_zero(none));
    }
}

#[test]
fn registers_that_read_as_zero() {
    for (arch, name) in [(Arch::Aarch64, "wzr"), (Arch::Riscv64, "x0")] {
        assert!(
            arch.register(name)
                .is_some_and(|register| arch.reads_as_zero(register))
        );
    }
    assert!(!Arch::Aarch64.reads_as_zero(Arch::Aarch64.stack_pointer()));
}

#[test]
fn nops_are_the_ones_at_real_sites() {
    let cases: [(Arch, &[u8]); 8] = [
        (Arch::X86_64, &[0x90]),
        (Arch::X86_64, &[0x0f, 0x1f, 0x44, 0x00, 0x00]),
        (Arch::I386, &[0x90]),
        (Arch::Aarch64, &0xd503_201f_u32.to_le_bytes()),
        (Arch::Arm, &0xbf00_u16.to_le_bytes()),
        (Arch::Ppc64le, &0x6000_0000_u32.to_le_bytes()),
        (Arch::S390x, &0x4700_0000_u32.to_be_bytes()),
        (Arch::Riscv64, &0x0001_u16.to_le_bytes()),
    ];
    for (arch, nop) in cases {
        assert!(arch.nops().contains(&nop), "{} {nop:x?}", arch.name());
        assert!(arch.nops().iter().all(|nop| !nop.is_empty()));
    }
}
