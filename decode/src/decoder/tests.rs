//! Operands of all architectures against values worked out by hand.

use usdtrec_format::Arch::{Aarch64, Arm, I386, Ppc64le, Riscv64, S390x, X86_64};
use usdtrec_format::Missing::{BeyondStack, Memory, Pair, RedZone, Truncated, Wide};
use usdtrec_format::Value::{Float32, Float64, Signed, Unsigned};
use usdtrec_format::perf::{Attr, Sample};
use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::{Arch, Missing, RawArgument, RawField, RawLayout, RawString, Value};

use super::Decoder;

/// A hit: registers by perf's number, and the stack from the stack pointer upwards.
struct Hit {
    registers: Vec<(u8, u64)>,
    stack: Vec<u8>,
    abi: u64,
}

impl Hit {
    fn new(registers: &[(u8, u64)], stack: &[u8]) -> Self {
        let mut registers = registers.to_vec();
        registers.sort_unstable();
        Self {
            registers,
            stack: stack.to_vec(),
            abi: 2,
        }
    }

    fn values(&self, arch: Arch, args: &str) -> Vec<Value> {
        let words: Vec<u8> = self
            .registers
            .iter()
            .flat_map(|&(_, word)| match arch {
                S390x => word.to_be_bytes(),
                _ => word.to_le_bytes(),
            })
            .collect();
        let attr = Attr {
            sample_regs_user: self.registers.iter().map(|&(bit, _)| 1 << bit).sum(),
            sample_stack_user: self.stack.len().next_multiple_of(8) as u32,
            ..Attr::default()
        };
        let sample = Sample {
            regs_abi: self.abi,
            regs: if self.abi == 0 { &[] } else { &words },
            stack: &self.stack,
            ..Sample::default()
        };
        let decoder = Decoder::new(args, Some(arch), &attr);
        let mut values = decoder.values();
        decoder.decode(&sample, &mut values);
        values
    }

    fn value(&self, arch: Arch, arg: &str) -> Value {
        let mut values = self.values(arch, arg);
        assert_eq!(values.len(), 1, "{arg}");
        values.remove(0)
    }
}

fn missing(value: Missing) -> Value {
    Value::Missing(value)
}

fn reason(value: &Value) -> String {
    match value {
        Value::Missing(missing) => missing.to_string(),
        other => panic!("{other:?} is not missing"),
    }
}

const RAX: u8 = 0;
const RBX: u8 = 1;
const RCX: u8 = 2;
const RBP: u8 = 6;
const RSP: u8 = 7;

#[test]
fn registers_are_cut_and_sign_extended_by_size() {
    let hit = Hit::new(&[(RAX, 0x1122_3344_5566_8899), (RBX, u64::MAX)], &[]);
    for (arg, value) in [
        ("8@%rax", Unsigned(0x1122_3344_5566_8899)),
        ("-8@%rbx", Signed(-1)),
        ("8@%rbx", Unsigned(u64::MAX)),
        ("4@%eax", Unsigned(0x5566_8899)),
        ("-4@%eax", Signed(0x5566_8899)),
        ("-4@%ebx", Signed(-1)),
        ("2@%ax", Unsigned(0x8899)),
        ("-2@%ax", Signed(0x8899 - 0x1_0000)),
        ("1@%al", Unsigned(0x99)),
        ("-1@%al", Signed(0x99 - 0x100)),
        ("1@%ah", Unsigned(0x88)),
        ("-1@%ah", Signed(0x88 - 0x100)),
        ("1@%eax", Unsigned(0x99)),
        ("-2@%rax", Signed(0x8899 - 0x1_0000)),
        ("%rax", Unsigned(0x1122_3344_5566_8899)),
        ("%eax", Unsigned(0x5566_8899)),
        ("%al", Unsigned(0x99)),
    ] {
        assert_eq!(hit.value(X86_64, arg), value, "{arg}");
    }
}

#[test]
fn constants_are_cut_to_size() {
    let hit = Hit::new(&[], &[]);
    for (arg, value) in [
        ("-4@$-1", Signed(-1)),
        ("4@$-1", Unsigned(4_294_967_295)),
        ("1@$-6", Unsigned(250)),
        ("-1@$200", Signed(-56)),
        ("8@$-1", Unsigned(u64::MAX)),
        ("-8@$5", Signed(5)),
        ("2@$65537", Unsigned(1)),
    ] {
        assert_eq!(hit.value(X86_64, arg), value, "{arg}");
    }
    assert_eq!(hit.value(Aarch64, "-4@-1"), Signed(-1));
    assert_eq!(hit.value(Ppc64le, "-4@i8192"), Signed(8192));
    assert_eq!(hit.value(S390x, "4@8192"), Unsigned(8192));
    assert_eq!(hit.value(Riscv64, "4@-1"), Unsigned(4_294_967_295));
    assert_eq!(hit.value(Arm, "-4@#-7"), Signed(-7));
    assert_eq!(hit.value(Arm, "8f@#1.5e+0"), Float64(1.5));
}

#[test]
fn floats_are_of_their_size() {
    let hit = Hit::new(
        &[
            (RAX, 1.5_f64.to_bits()),
            (RBX, 0xdead_0000_0000_0000 | u64::from(2.5_f32.to_bits())),
            (RSP, 0x7000),
        ],
        &(-0.25_f64).to_le_bytes(),
    );
    assert_eq!(hit.value(X86_64, "8f@%rax"), Float64(1.5));
    assert_eq!(hit.value(X86_64, "4f@%ebx"), Float32(2.5));
    assert_eq!(hit.value(X86_64, "8f@(%rsp)"), Float64(-0.25));
    assert_eq!(reason(&hit.value(X86_64, "16f@(%rsp)")), "16-byte float");
    assert_eq!(
        hit.value(X86_64, "8f@%xmm0"),
        missing(Missing::Register("xmm0"))
    );
    assert_eq!(
        hit.values(X86_64, "8f@%xmm7 8f@%rax"),
        [missing(Missing::Register("xmm7")), Float64(1.5)],
        "one that cannot be had costs the others nothing"
    );
}

#[test]
fn memory_is_found_by_its_address() {
    let sp = 0x7ffc_0000_1000;
    let mut stack = vec![0; 64];
    stack[16..24].copy_from_slice(&(-2_i64).to_le_bytes());
    stack[56..64].copy_from_slice(&0x0102_0304_0506_0708_u64.to_le_bytes());
    let hit = Hit::new(
        &[
            (RAX, sp + 8),
            (RBX, 2),
            (RCX, 0x5555_0000_0000),
            (RBP, sp + 48),
            (RSP, sp),
        ],
        &stack,
    );
    for (arg, value) in [
        ("-8@16(%rsp)", Signed(-2)),
        ("-8@-32(%rbp)", Signed(-2)),
        ("-4@8(%rax)", Signed(-2)),
        ("2@(%rax,%rbx,4)", Unsigned(0xfffe)),
        ("8@8(%rbp)", Unsigned(0x0102_0304_0506_0708)),
        ("1@63(%rsp)", Unsigned(1)),
        ("8@64(%rsp)", missing(BeyondStack(sp + 64, 64))),
        ("8@57(%rsp)", missing(BeyondStack(sp + 57, 64))),
        ("-4@-4(%rsp)", missing(RedZone(sp - 4))),
        ("-4@-176(%rbp)", missing(RedZone(sp - 128))),
        ("-4@-180(%rbp)", missing(Memory(sp - 132))),
        ("8@-2(%rsp)", missing(RedZone(sp - 2))),
        ("8@(%rcx)", missing(Memory(0x5555_0000_0000))),
        ("8@0x10000000(%rsp)", missing(Memory(sp + 0x1000_0000))),
        ("8@(%rdx)", missing(Missing::Register("rdx"))),
    ] {
        assert_eq!(hit.value(X86_64, arg), value, "{arg}");
    }
}

#[test]
fn a_dump_without_the_stack_pointer_still_serves_what_is_relative_to_it() {
    let hit = Hit::new(&[(RAX, 1)], &7_u64.to_le_bytes());
    assert_eq!(hit.value(X86_64, "8@(%rsp)"), Unsigned(7));
    for arg in ["8@8(%rsp)", "8@-8(%rsp)"] {
        let value = hit.value(X86_64, arg);
        assert_eq!(value, missing(Missing::Register("rsp")), "{arg}");
    }
    assert_eq!(hit.value(X86_64, "8@(%rax)"), missing(Memory(1)));
}

#[test]
fn registers_without_a_stack_dump_give_the_address() {
    let hit = Hit::new(&[(RSP, 0x7000), (RBP, 0x7100)], &[]);
    assert_eq!(hit.value(X86_64, "8@8(%rbp)"), missing(Memory(0x7108)));
    assert_eq!(hit.value(X86_64, "8@-8(%rsp)"), missing(RedZone(0x6ff8)));
}

#[test]
fn what_a_sample_can_never_hold_has_a_reason() {
    let hit = Hit::new(&[(RAX, 1), (RSP, 2)], &[0; 8]);
    for (arg, words) in [
        ("-4@NBuffers(%rip)", "NBuffers"),
        ("-4@40+CheckpointStats(%rip)", "CheckpointStats"),
        ("8@arr@GOTPCREL(%rip)", "arr"),
        ("-4@%fs:0x10", "fs"),
        ("-4@%nonsense", "nonsense"),
    ] {
        let reason = reason(&hit.value(X86_64, arg));
        assert!(reason.contains(words), "{arg}: {reason}");
    }
}

/// Of a value that is wider than what can be shown, what is known and why there is no more.
#[test]
fn wide_values() {
    let hit = Hit::new(
        &[(RAX, u64::MAX), (RSP, 0x7000)],
        &[1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    let low = 0x0807_0605_0403_0201;
    assert_eq!(hit.value(X86_64, "16@(%rsp)"), missing(Wide(16, low)));
    assert_eq!(
        reason(&hit.value(X86_64, "-16@(%rsp)")),
        "value of 16 bytes, lower 8 0x807060504030201"
    );
    assert_eq!(hit.value(X86_64, "16@%rax"), missing(Pair(8, u64::MAX)));
    assert_eq!(hit.value(X86_64, "16@$5"), Unsigned(5));
    assert_eq!(hit.value(X86_64, "-16@$-5"), Signed(-5));
    let reason = reason(&hit.value(S390x, "16@0(%r15)"));
    assert!(!reason.contains("lower"), "{reason}");
}

#[test]
fn thirty_two_bit_programs_on_a_64_bit_kernel() {
    // perf's register numbers are the same; eax -1 with junk above, esp 0xffffd000.
    let mut hit = Hit::new(
        &[(RAX, 0x1_ffff_ffff), (RBX, 0xffff_cffc), (RSP, 0xffff_d000)],
        &[1, 2, 3, 4, 5, 6, 7, 8],
    );
    hit.abi = 1;
    assert_eq!(hit.value(I386, "-4@%eax"), Signed(-1));
    assert_eq!(hit.value(I386, "4@%eax"), Unsigned(0xffff_ffff));
    assert_eq!(hit.value(I386, "1@%eax"), Unsigned(0xff));
    assert_eq!(hit.value(I386, "4@4(%esp)"), Unsigned(0x0807_0605));
    assert_eq!(hit.value(I386, "4@8(%ebx)"), Unsigned(0x0807_0605));
    assert_eq!(
        hit.value(I386, "8@(%esp)"),
        Unsigned(0x0807_0605_0403_0201),
        "in memory a value of 8 bytes is whole"
    );
    assert_eq!(hit.value(I386, "-8@%eax"), missing(Pair(4, 0xffff_ffff)));
    // 0xffffd000 + 0xfffffffe * 1 + 6 wraps to 0xffffd004.
    let wrapping = Hit {
        registers: vec![(RAX, 0xffff_fffe), (RSP, 0xffff_d000)],
        ..hit
    };
    assert_eq!(
        wrapping.value(I386, "4@6(%esp,%eax,1)"),
        Unsigned(0x0807_0605)
    );
    assert_eq!(
        wrapping.value(I386, "4@-8(%esp)"),
        missing(Memory(0xffff_cff8)),
        "i386 has no red zone"
    );
}

#[test]
fn aarch64_operands() {
    let sp = 0xffff_0000_0000;
    let mut stack = vec![0; 160];
    stack[132..136].copy_from_slice(&(-5_i32).to_le_bytes());
    let hit = Hit::new(
        &[
            (1, 2.5_f64.to_bits()),
            (2, 0xffff_ffff_8000_0001),
            (20, sp + 140),
            (21, 0xffff_ffff_ffff_fff8_u64),
            (31, sp),
        ],
        &stack,
    );
    assert_eq!(hit.value(Aarch64, "-4@[sp, 132]"), Signed(-5));
    assert_eq!(hit.value(Aarch64, "-4@[x20, -8]"), Signed(-5));
    assert_eq!(
        hit.value(Aarch64, "-4@x2"),
        Signed(0x8000_0001_u32 as i32 as i64)
    );
    assert_eq!(hit.value(Aarch64, "1@x2"), Unsigned(1));
    assert_eq!(hit.value(Aarch64, "8f@x1"), Float64(2.5));
    assert_eq!(hit.value(Aarch64, "-4@[x20, w21, sxtw]"), Signed(-5));
    assert_eq!(
        hit.value(Aarch64, "-4@[sp, -4]"),
        missing(Memory(sp - 4)),
        "AAPCS64 has no red zone"
    );
}

#[test]
fn arm_operands() {
    let sp = 0xbeff_f000;
    let mut stack = vec![0; 64];
    stack[52..56].copy_from_slice(&77_u32.to_le_bytes());
    let mut hit = Hit::new(
        &[(4, 0x89), (7, sp), (11, sp + 48), (12, 3), (13, sp)],
        &stack,
    );
    hit.abi = 1;
    assert_eq!(hit.value(Arm, "-4@[r7, #52]"), Signed(77));
    assert_eq!(hit.value(Arm, "-4@[sp, #52]"), Signed(77));
    assert_eq!(hit.value(Arm, "4@[fp, #4]"), Unsigned(77));
    assert_eq!(hit.value(Arm, "4@fp"), Unsigned(sp + 48));
    assert_eq!(hit.value(Arm, "4@ip"), Unsigned(3));
    assert_eq!(hit.value(Arm, "-1@r4"), Signed(0x89 - 0x100));
    assert_eq!(hit.value(Arm, "-8@r4"), missing(Pair(4, 0x89)));
}

#[test]
fn powerpc_operands() {
    let sp = 0x7fff_0000_0000;
    let mut stack = vec![0; 48];
    stack[32..36].copy_from_slice(&(-9_i32).to_le_bytes());
    let hit = Hit::new(&[(1, sp), (9, sp + 32), (29, u64::MAX - 1)], &stack);
    assert_eq!(hit.value(Ppc64le, "8@29"), Unsigned(u64::MAX - 1));
    assert_eq!(hit.value(Ppc64le, "-4@29"), Signed(-2));
    assert_eq!(hit.value(Ppc64le, "-4@0(9)"), Signed(-9));
    assert_eq!(hit.value(Ppc64le, "-4@32(1)"), Signed(-9));
    assert_eq!(hit.value(Ppc64le, "-4@-512(1)"), missing(RedZone(sp - 512)));
    assert_eq!(hit.value(Ppc64le, "-4@-516(1)"), missing(Memory(sp - 516)));
}

#[test]
fn s390_operands_are_big_endian() {
    let sp = 0x3ff_0000_0000;
    let mut stack = vec![0; 200];
    stack[188..192].copy_from_slice(&0x0102_0304_u32.to_be_bytes());
    let floats = [(16, 0x3fc0_0000_dead_beef), (17, 0x3ff8_0000_0000_0000)];
    let hit = Hit::new(
        &[(11, 0xaa_0000_ff80), (15, sp), floats[0], floats[1]],
        &stack,
    );
    assert_eq!(hit.value(S390x, "4f@%f0"), Float32(1.5));
    assert_eq!(hit.value(S390x, "4@%f0"), Unsigned(0x3fc0_0000));
    assert_eq!(hit.value(S390x, "8f@%f1"), Float64(1.5));
    assert_eq!(hit.value(S390x, "4@188(%r15)"), Unsigned(0x0102_0304));
    assert_eq!(hit.value(S390x, "2@188(%r15)"), Unsigned(0x0102));
    assert_eq!(hit.value(S390x, "8@%r11"), Unsigned(0xaa_0000_ff80));
    assert_eq!(hit.value(S390x, "-1@%r11"), Signed(-128));
    assert_eq!(
        hit.value(S390x, "8@-80(%r11)"),
        missing(Memory(0xaa_0000_ff30))
    );
}

#[test]
fn riscv_operands() {
    let sp = 0x3f_ff00_0000;
    let mut stack = vec![0; 64];
    stack[56..60].copy_from_slice(&3_u32.to_le_bytes());
    let hit = Hit::new(
        &[(2, sp), (8, sp + 136), (10, 0xffff_ffff_ffff_fffe), (20, 9)],
        &stack,
    );
    assert_eq!(hit.value(Riscv64, "-4@56(sp)"), Signed(3));
    assert_eq!(hit.value(Riscv64, "4@-80(s0)"), Unsigned(3));
    assert_eq!(hit.value(Riscv64, "-4@a0"), Signed(-2));
    assert_eq!(hit.value(Riscv64, "8@s4"), Unsigned(9));
}

#[test]
fn samples_without_registers_or_cut_short_are_said_to_be() {
    let mut hit = Hit::new(&[(RAX, 5), (RSP, 0x7000)], &[]);
    hit.abi = 0;
    assert_eq!(
        hit.values(X86_64, "8@%rax 4@$3"),
        [missing(Missing::Register("rax")), Unsigned(3)]
    );
    let attr = Attr {
        sample_regs_user: 3,
        ..Attr::default()
    };
    let decoder = Decoder::new("8@%rax 8@%rbx", Some(X86_64), &attr);
    let sample = Sample {
        regs_abi: 2,
        regs: &[1, 0, 0, 0, 0, 0, 0, 0, 2],
        ..Sample::default()
    };
    let mut values = decoder.values();
    decoder.decode(&sample, &mut values);
    assert_eq!(values, [Unsigned(1), missing(Truncated)]);
}

#[test]
fn an_unknown_architecture_has_no_values() {
    let decoder = Decoder::new("8@%rax", None, &Attr::default());
    assert_eq!(decoder.len(), 1);
    assert!(matches!(decoder.values()[0], Value::Missing(_)));
}

#[test]
fn one_argument_is_decoded_alone() {
    let words: Vec<u8> = [0x50_0000_u64, 7]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let attr = Attr {
        sample_regs_user: 1 << RAX | 1 << RBX,
        ..Attr::default()
    };
    let sample = Sample {
        regs_abi: 2,
        regs: &words,
        ..Sample::default()
    };
    let args = "8@%rax 8@%rbx -4@%ebx 8@$0x600000 -8@%rax";
    let decoder = Decoder::new(args, Some(X86_64), &attr);
    let mut values = decoder.values();
    decoder.decode_one(1, &sample, &mut values);
    let undecoded = missing(Truncated);
    let constant = Unsigned(0x60_0000);
    assert_eq!(
        values,
        [
            undecoded.clone(),
            Unsigned(7),
            undecoded.clone(),
            constant,
            undecoded
        ]
    );
    decoder.decode_one(0, &sample, &mut values);
    assert_eq!(values[0], Unsigned(0x50_0000));
    // Words of the size of an address may be those of strings.
    let mut unread = decoder.unread_arguments();
    unread.sort_unstable();
    assert_eq!(unread, [0, 1, 3]);
    let address = |argument| {
        let string = decoder.unread_string(argument, &sample, &values);
        string.map(|string| (string.argument, string.address))
    };
    assert_eq!(address(0), Some((0, 0x50_0000)));
    assert_eq!(address(1), None, "nothing is mapped there");
    assert_eq!(address(2), None);
    assert_eq!(address(3), Some((3, 0x60_0000)));
}

/// An integer in the raw part is read alone as it is decoded, whatever its size, sign and type are; what may be more than an integer is not.
#[test]
fn integers_are_read_as_they_are_decoded() {
    let field = |offset, size, string| {
        RawArgument::Field(RawField {
            offset,
            size,
            signed: false,
            fault: Some(offset as u8 / 8),
            string,
        })
    };
    let string = RawString {
        location: 8,
        status: 12,
        known: false,
        length: None,
    };
    let args =
        "8@%rax -8@%rax 4@%eax -4@%eax 2@%ax -2@%ax 1@%al -1@%al -4@%eax 8f@%rax 8@%rax 4@$7";
    let sizes = [8, 8, 4, 4, 2, 2, 1, 1, 4, 8, 8];
    let fields = (2..).zip(sizes).map(|(at, size)| field(at * 8, size, None));
    let mut arguments: Vec<RawArgument> = fields.collect();
    arguments[10] = field(12 * 8, 8, Some(string));
    arguments.push(RawArgument::Constant);
    let layout = RawLayout {
        id: 1,
        size: 13 * 8,
        missing: Some(0),
        string_limit: 64,
        arguments,
        listed: false,
        thread_context: None,
        thread_waits: None,
    };
    let byte: ArgumentType = "u8".parse().unwrap();
    let mut types: Vec<Argument> = (0..12)
        .map(|at| Argument::named(format!("a{at}")))
        .collect();
    types[8].kind = Some(byte);
    let decoder = Decoder::from_raw(args, Some(X86_64), &layout).typed(&types);
    let mut values = decoder.values();
    for word in [
        0_u64,
        1,
        0x7f,
        0x80,
        0xffff_8081,
        u64::MAX,
        1 << 63,
        0x1234_5678_9abc_def0,
    ] {
        for (faults, len) in [(0_u32, 13), (1 << 2 | 1 << 5, 13), (0, 5)] {
            let mut raw = faults.to_le_bytes().to_vec();
            raw.resize(16, 0);
            raw.extend((2..13).flat_map(|_| word.to_le_bytes()));
            raw.truncate(len * 8);
            let sample = Sample {
                raw: &raw,
                ..Sample::default()
            };
            for argument in 0..12 {
                decoder.decode_one(argument, &sample, &mut values);
                let found = decoder.raw_integer(argument);
                assert_eq!(found.is_some(), argument < 9, "{argument}");
                let Some(found) = found else { continue };
                let expected = match values[argument] {
                    Unsigned(number) => Some((number, false)),
                    Signed(number) => Some((number.cast_unsigned(), number < 0)),
                    _ => None,
                };
                let found = found
                    .read(&raw)
                    .map(|found| (found.bits, found.is_negative));
                assert_eq!(
                    found, expected,
                    "{argument} {word:#x} {:?}",
                    values[argument]
                );
            }
        }
    }
}
