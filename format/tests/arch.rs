//! The register tables against what perf and the ABIs say.

use std::collections::{HashMap, HashSet};

use usdtrec_format::{Arch, Register, Uprobes};

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

/// `struct pt_regs` of the 64-bit kernel that runs programs of each architecture, word by word as its `asm/ptrace.h` declares it, up
/// to the last register that is an operand's; a dash for those that are not. Of 32-bit Arm's it is the names that
/// `compat_usr`, `compat_fp`, `compat_sp` and `compat_lr` there give to arm64's.
const PT_REGS: [(Arch, &str); 7] = [
    (
        Arch::X86_64,
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi - rip - - rsp",
    ),
    (
        Arch::I386,
        "- - - - ebp ebx - - - - eax ecx edx esi edi - eip - - esp",
    ),
    (
        Arch::Aarch64,
        "x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22 x23 x24 x25 x26 x27 x28 \
         x29 x30 sp pc",
    ),
    (
        Arch::Arm,
        "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 fp ip sp lr - - - - - - - - - - - - - - - - - pc",
    ),
    (
        Arch::Ppc64le,
        "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19 r20 r21 r22 r23 r24 r25 r26 r27 r28 \
         r29 r30 r31 nip - - ctr lr xer cr",
    ),
    (
        Arch::S390x,
        "- - pc r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 r13 r14 r15",
    ),
    (
        Arch::Riscv64,
        "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6",
    ),
];

/// Our names and those of the kernel's tables for `regs_query_register_offset` (`arch/*/kernel/ptrace.c`), where they differ.
const FETCH: [(Arch, &str); 7] = [
    (
        Arch::X86_64,
        "rax=ax rbx=bx rcx=cx rdx=dx rsi=si rdi=di rbp=bp rsp=sp rip=ip",
    ),
    (
        Arch::I386,
        "eax=ax ebx=bx ecx=cx edx=dx esi=si edi=di ebp=bp esp=sp eip=ip",
    ),
    (Arch::Aarch64, ""),
    (Arch::Arm, ""),
    (
        Arch::Ppc64le,
        "r0=gpr0 r1=gpr1 r2=gpr2 r3=gpr3 r4=gpr4 r5=gpr5 r6=gpr6 r7=gpr7 r8=gpr8 r9=gpr9 r10=gpr10 r11=gpr11 r12=gpr12 \
         r13=gpr13 r14=gpr14 r15=gpr15 r16=gpr16 r17=gpr17 r18=gpr18 r19=gpr19 r20=gpr20 r21=gpr21 r22=gpr22 r23=gpr23 \
         r24=gpr24 r25=gpr25 r26=gpr26 r27=gpr27 r28=gpr28 r29=gpr29 r30=gpr30 r31=gpr31 lr=link cr=ccr",
    ),
    // It looks for an `r` and a number below 16.
    (Arch::S390x, "pc=-"),
    (Arch::Riscv64, "pc=epc"),
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
fn offsets_are_those_of_pt_regs() {
    for (arch, names) in PT_REGS {
        let words = names.split_whitespace().zip((0_u16..).step_by(8));
        let known: Vec<_> = words.filter(|(name, _)| *name != "-").collect();
        for (name, offset) in &known {
            let register = arch.register(name);
            let found = register.and_then(|register| arch.pt_regs_offset(register));
            assert_eq!(found, Some(*offset), "{name} of {}", arch.name());
        }
        let all = registers(arch).filter(|register| arch.pt_regs_offset(*register).is_some());
        assert_eq!(all.count(), known.len(), "{}", arch.name());
    }
}

#[test]
fn fetch_arguments_have_the_kernels_names() {
    for (arch, differing) in FETCH {
        let pairs = differing.split_whitespace();
        let differing: HashMap<&str, &str> =
            pairs.filter_map(|pair| pair.split_once('=')).collect();
        for register in registers(arch) {
            let name = arch.register_name(register);
            // What the kernel saves it names, too.
            let saved = arch.pt_regs_offset(register).map(|_| name);
            let expected = saved.map(|name| *differing.get(name).unwrap_or(&name));
            let expected = expected.filter(|name| *name != "-");
            assert_eq!(
                arch.fetch_name(register),
                expected,
                "{name} of {}",
                arch.name()
            );
        }
    }
}

/// DWARF's numbers against those of gimli, and for s390x, which gimli does not have, of the ABI's supplement.
#[test]
fn dwarf_numbers_are_the_abis() {
    type Named = fn(&str) -> Option<gimli::Register>;
    let sources: [(Arch, Named); 6] = [
        (Arch::X86_64, gimli::X86_64::name_to_register),
        (Arch::I386, gimli::X86::name_to_register),
        (Arch::Aarch64, gimli::AArch64::name_to_register),
        (Arch::Arm, gimli::Arm::name_to_register),
        (Arch::Ppc64le, gimli::PowerPc64::name_to_register),
        (Arch::Riscv64, gimli::RiscV::name_to_register),
    ];
    for (arch, named) in sources {
        let mut compared = 0;
        for register in registers(arch) {
            let Some(number) = arch.dwarf_register(register) else {
                continue;
            };
            let name = arch.register_name(register);
            // gimli does not have them; AMD64 supplement, table 3.36.
            let extended = (arch == Arch::X86_64)
                .then(|| name.strip_prefix('r'))
                .flatten();
            let extended = extended.and_then(|digits| digits.parse::<u16>().ok());
            if let Some(extended @ 16..) = extended {
                assert_eq!(number, 130 + extended - 16, "{name}");
                continue;
            }
            let Some(found) = named(&gimli_name(arch, name)) else {
                panic!("gimli has no {name} of {}", arch.name());
            };
            assert_eq!(found.0, number, "{name} of {}", arch.name());
            compared += 1;
        }
        assert!(compared >= 16, "{}", arch.name());
    }
    let floats = "f0 f2 f4 f6 f1 f3 f5 f7 f8 f10 f12 f14 f9 f11 f13 f15";
    let general = (0..16).map(|number| format!("r{number}"));
    let floats = floats.split(' ').map(str::to_owned);
    for (name, number) in general.chain(floats).zip(0_u16..) {
        let register = Arch::S390x.register(&name).expect("a register");
        assert_eq!(Arch::S390x.dwarf_register(register), Some(number), "{name}");
    }
}

/// How gimli spells a register.
fn gimli_name(arch: Arch, name: &str) -> String {
    match (arch, name) {
        (Arch::X86_64 | Arch::I386, _) => name.replace(['(', ')'], ""),
        (Arch::Arm, "fp") => "R11".to_owned(),
        (Arch::Arm, "ip") => "R12".to_owned(),
        (Arch::Arm | Arch::Aarch64, _) => name.to_uppercase(),
        (Arch::Ppc64le, _) => name.replace('v', "vr"),
        _ => name.to_owned(),
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
        (Arch::X86_64, "rsp", "rbp", "rip", None),
        (Arch::I386, "esp", "ebp", "eip", None),
        (Arch::Aarch64, "sp", "x29", "pc", Some("x30")),
        (Arch::Arm, "sp", "fp", "pc", Some("lr")),
        (Arch::Ppc64le, "r1", "r31", "nip", Some("lr")),
        (Arch::S390x, "r15", "r11", "pc", Some("r14")),
        (Arch::Riscv64, "sp", "s0", "pc", Some("ra")),
    ];
    for (arch, stack, frame, counter, returns) in cases {
        assert_eq!(arch.register_name(arch.stack_pointer()), stack);
        let found = arch.return_register();
        assert_eq!(found.map(|register| arch.register_name(register)), returns);
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
    }
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
        assert!(arch.is_nop(nop), "{} {nop:x?}", arch.name());
        assert!(!arch.is_nop(&[]) && !arch.is_nop(&nop[..nop.len() - 1]));
        assert_eq!(arch.unplanted_prefix(nop), None);
    }
}

/// Instructions of x86 that do nothing, and what looks like one.
#[test]
fn nops_of_x86_may_have_prefixes() {
    let both: &[&[u8]] = &[
        b"\x66\x90",
        b"\x66\x66\x66\x90",
        b"\xf2\x90",
        b"\xf3\x90",
        b"\x64\x90",
        b"\x65\x66\x0f\x1f\x00",
        b"\x0f\x1f\xc0",
        b"\x0f\x1f\x40\x00",
        b"\x0f\x1f\x44\x00\x00",
        b"\xf3\x0f\x1f\x00",
        b"\x66\x66\x0f\x1f\x84\0\0\0\0\0",
        b"\x66\x66\x66\x66\x66\x66\x66\x0f\x1f\x84\0\0\0\0\0",
        b"\x0f\x1f\x80\0\0\0\0",
        b"\x0f\x1f\x04\x25\0\0\0\0",
        b"\xf3\x0f\x1e\xfa",
        b"\x66\x87\xc0",
        b"\x66\x89\xf6",
    ];
    for arch in [Arch::X86_64, Arch::I386] {
        for code in both {
            assert!(arch.is_nop(code), "{} {code:02x?}", arch.name());
            assert!(!arch.is_nop(&code[..code.len() - 1]), "{code:02x?}");
            assert_eq!(arch.unplanted_prefix(code), None);
        }
    }
    for code in [
        &b"\x48\x90"[..],
        b"\x48\x87\xc0",
        b"\x4d\x89\xff",
        b"\x48\x8d\x76\x00",
        b"\x48\x8d\x36",
        b"\x48\x8d\x74\x26\x00",
        b"\x4d\x8d\xac\x25\0\0\0\0",
        b"\x67\x0f\x1f\x44\x00\x00",
        b"\x66\x48\x0f\x1f\x00",
    ] {
        assert!(Arch::X86_64.is_nop(code), "{code:02x?}");
    }
    for code in [
        &b"\x41\x90"[..],
        b"\x49\x90",
        b"\x87\xc0",
        b"\x89\xff",
        b"\x48\x87\xc1",
        b"\x4c\x89\xff",
        b"\x8d\x76\x00",
        b"\x48\x8d\x76\x01",
        b"\x4c\x8d\x36",
        b"\x67\x48\x8d\x36",
        b"\x48\x8d\x35\0\0\0\0",
        b"\x48\x8d\x34\x36",
        b"\x0f\x1e\xfa",
        b"\x0f\x0b",
        b"\x48\xc3",
        b"\x66",
        b"\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90",
    ] {
        assert!(!Arch::X86_64.is_nop(code), "{code:02x?}");
    }
    for code in [
        &b"\x87\xc0"[..],
        b"\x8d\x76\x00",
        b"\x8d\xb6\0\0\0\0",
        b"\x8d\x74\x26\x00",
        b"\x8d\xbc\x27\0\0\0\0",
        b"\x67\x66\x0f\x1f\x44\x00",
    ] {
        assert!(Arch::I386.is_nop(code), "{code:02x?}");
    }
    // `dec %eax`, then a nop.
    assert!(!Arch::I386.is_nop(b"\x48\x90"));
    for (code, prefix) in [
        (&b"\x2e\x90"[..], 0x2e),
        (b"\x3e\x0f\x1f\x00", 0x3e),
        (b"\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 0x2e),
        (b"\x66\x66\x36\x90", 0x36),
        (b"\x26\x90", 0x26),
        (b"\xf0\x48\xff\x00", 0xf0),
    ] {
        assert_eq!(Arch::X86_64.unplanted_prefix(code), Some(prefix));
        assert_eq!(Arch::X86_64.is_nop(code), prefix != 0xf0);
    }
    // The kernel does not see the fifth prefix, and plants a probe there.
    assert_eq!(
        Arch::X86_64.unplanted_prefix(b"\x66\x67\xf2\x64\x2e\x90"),
        None
    );
}

/// ELF headers against the constants of another reader of ELF files; byte orders and pointers by what each name says.
#[test]
fn elf_headers() {
    use object::elf;
    let cases = [
        (Arch::X86_64, elf::EM_X86_64, true, false),
        (Arch::I386, elf::EM_386, false, false),
        (Arch::Aarch64, elf::EM_AARCH64, true, false),
        (Arch::Arm, elf::EM_ARM, false, false),
        (Arch::Ppc64le, elf::EM_PPC64, true, false),
        (Arch::S390x, elf::EM_S390, true, true),
        (Arch::Riscv64, elf::EM_RISCV, true, false),
    ];
    for (arch, machine, class64, big_endian) in cases {
        assert_eq!(Arch::from_elf(machine.0, class64, big_endian), Some(arch));
        assert_eq!(Arch::from_elf(machine.0, !class64, big_endian), None);
        assert_eq!(Arch::from_elf(machine.0, class64, !big_endian), None);
        assert_eq!(arch.is_big_endian(), big_endian);
        assert_eq!(arch.pointer_size(), if class64 { 8 } else { 4 });
    }
}

/// This program's own ELF header says what it was compiled for.
#[test]
fn the_host_is_what_this_program_is_for() {
    use object::read::elf::FileHeader as _;
    let program = std::fs::read("/proc/self/exe").expect("this program");
    let header = object::elf::FileHeader64::<object::Endianness>::parse(&*program);
    let header = header.expect("a 64-bit program");
    let endian = header.endian().expect("a byte order");
    let machine = header.e_machine(endian).0;
    assert_eq!(
        Arch::host(),
        Arch::from_elf(machine, true, header.is_big_endian())
    );
}

/// The stack below its pointer, the bits of addresses and of authentication codes, as the ABIs and the kernel's documents say
/// (named in `src/arch/`).
#[test]
fn stacks_and_addresses() {
    let cases = [
        (Arch::X86_64, 128, 47),
        (Arch::I386, 0, 32),
        (Arch::Aarch64, 0, 48),
        (Arch::Arm, 0, 32),
        (Arch::Ppc64le, 512, 47),
        (Arch::S390x, 0, 42),
        (Arch::Riscv64, 0, 47),
    ];
    for (arch, red_zone, address_bits) in cases {
        let found = (arch.red_zone(), arch.address_bits());
        assert_eq!(found, (red_zone, address_bits), "{}", arch.name());
        // A code takes what is left below the bit that tells user space from the kernel.
        let codes = arch.pointer_authentication_bits();
        let expected = (arch == Arch::Aarch64).then_some(address_bits..=54);
        assert_eq!(codes, expected, "{}", arch.name());
    }
}

#[test]
fn kernels_that_run_programs() {
    for arch in Arch::ALL {
        let kernel = arch.kernel();
        assert_eq!((kernel.kernel(), kernel.pointer_size()), (kernel, 8));
        assert_eq!(kernel.is_big_endian(), arch.is_big_endian());
    }
    assert_eq!(Arch::I386.kernel(), Arch::X86_64);
    assert_eq!(Arch::Arm.kernel(), Arch::Aarch64);
    let on = |host: Arch| Arch::ALL.map(|arch| arch.uprobes_on(host));
    use Uprobes::{Events, None, Programs};
    assert_eq!(
        on(Arch::X86_64),
        [Programs, Programs, None, None, None, None, None]
    );
    // Its kernel refuses 32-bit programs.
    assert_eq!(
        on(Arch::Aarch64),
        [None, None, Programs, None, None, None, None]
    );
    assert_eq!(
        on(Arch::Riscv64),
        [None, None, None, None, None, None, Events]
    );
    assert_eq!(on(Arch::Arm), [None; 7]);
}

/// x86's, System V ABI (`fs` in 64-bit programs) and Ulrich Drepper's ELF Handling For Thread-Local Storage, 4.4.
#[test]
fn thread_local_storage() {
    let thread_words = |arch: Arch| arch.thread_segment().zip(arch.thread_relocation());
    assert_eq!(thread_words(Arch::X86_64), Some(("fs", "tpoff")));
    assert_eq!(thread_words(Arch::I386), Some(("gs", "ntpoff")));
    assert_eq!(thread_words(Arch::Aarch64), None);
}
