//! Programs, run in an interpreter: over the operands of the corpus, every value must stand in the record where the
//! layout says, equal to what a walk over the operand by hand gives.

mod filters;
mod ids;
mod keys;
mod lists;
mod machine;
mod nonresident;
mod spans;
mod stacks;

use serde_json::Value;
use usdtrec_format::{Arch, Location, Operand, RawArgument, RawField, Register, parse_operands};

use self::machine::{Hit, NOW, PREEMPTION, THREAD, UID, byte_at, register_value, string_len};
use super::contract::{END_SIZE, RAW, rooms};
use super::contract::{FOLLOWED, LINKED, RecordedProcesses};
use super::contract::{instruction_pointer, register_offset};
use super::nonresident::{Look, Touch};
use super::program::generate;
use super::program::spec::{Common, CpuRange, Spec, ThreadBase};
use super::samples::compact::{self, Evidence, Shape, is_long};
use crate::plan::capture::{Capture, CaptureSite};
use crate::plan::layout::{OfThread, Strings, layout};
use crate::plan::read::Address;
use crate::plan::symbols::Symbols;

const PC: u64 = 0x1234;
const STRINGS: Strings = Strings {
    limit: 100,
    known: true,
};

/// The lines of a corpus file that are of one architecture.
fn arguments(name: &str, arch: &str) -> Vec<String> {
    let path = format!(
        "{}/../../testdata/corpus/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_arch = lines.filter(|line| line["arch"] == arch);
    let mut all: Vec<String> = of_arch
        .filter_map(|line| Some(line["args"].as_str()?.to_owned()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A planned site.
struct Planned {
    operands: Vec<Operand>,
    captures: Vec<Capture>,
    addresses: Vec<Option<Address>>,
    layout: usdtrec_format::RawLayout,
    arch: Arch,
}

impl Planned {
    fn new(args: &str, arch: Arch, strings: Strings) -> Self {
        let operands = parse_operands(args, Some(arch));
        let symbols = Symbols::made_up(
            operands
                .iter()
                .filter_map(|operand| operand.location.symbol())
                .map(|name| (name, symbol_value(name))),
        );
        let place = CaptureSite {
            arch,
            pc: PC,
            symbols: &symbols,
            has_register: &|register| register_offset(arch, register).is_some(),
            has_thread: true,
        };
        let captures: Vec<_> = operands
            .iter()
            .map(|operand| place.capture(operand))
            .collect();
        let layout = layout(&captures, strings, &[], OfThread::default());
        let addresses = operands.iter().map(|operand| place.address_of(operand));
        Self {
            addresses: addresses.collect(),
            operands,
            captures,
            layout,
            arch,
        }
    }

    /// The record in the ring.
    fn run(&self, hit: &Hit, common: &Common) -> Option<Vec<u8>> {
        self.run_with(None, hit, common)
    }

    /// The record in the ring, of a program with the site's cookie if one is given.
    fn run_with(&self, cookie: Option<u64>, hit: &Hit, common: &Common) -> Option<Vec<u8>> {
        let spec = Spec {
            cookie,
            ..self.spec()
        };
        hit.run(&generate(&[&spec], common).unwrap())
    }

    /// The shape of its records without callers.
    fn shape(&self) -> Shape<'_> {
        Shape {
            layout: &self.layout,
            rooms: rooms(&self.layout),
            end: 0,
        }
    }

    /// A site without cookie and filter.
    fn spec(&self) -> Spec<'_> {
        Spec {
            role: None,
            cookie: None,
            arch: self.arch,
            captures: &self.captures,
            layout: &self.layout,
            measured: &[],
            condition: None,
            graph: None,
            return_address: None,
        }
    }

    /// The fields with their operands.
    fn fields(&self) -> impl Iterator<Item = (&Operand, RawField)> {
        let arguments = self.operands.iter().zip(&self.layout.arguments);
        arguments.filter_map(|(operand, argument)| match argument {
            RawArgument::Field(field) => Some((operand, *field)),
            _ => None,
        })
    }
}

/// Appends a record of a site whose arguments are not known yet.
fn compact(record: &[u8], shape: Shape<'_>, out: &mut Vec<u8>) -> bool {
    let evidence = Evidence {
        histories: &mut [],
        news: &mut Vec::new(),
        lacks_strings: &mut false,
    };
    compact::compact(record, shape, evidence, out)
}

fn symbol_value(name: &str) -> u64 {
    0x40_0000 + name.bytes().map(u64::from).sum::<u64>() * 16
}

fn common() -> Common {
    Common {
        touch: Touch::Always,
        thread_base: Some(ThreadBase {
            pointer: 0x1490,
            descriptors: Some(0x1460),
        }),
        first_id: 0x42,
        ids: 1,
        strings: 16,
        preemption: Some(PREEMPTION),
        ..Common::default()
    }
}

/// What a field must hold: the operand's value as so many bytes, sign-extended into the field.
fn expected(operand: &Operand, field: RawField, arch: Arch) -> u64 {
    let word = arch.pointer_size();
    let bytes = operand.bytes(arch).min(8);
    let (bits, bytes) = match &operand.location {
        &Location::Register {
            register,
            width,
            shift,
            ..
        } => (
            value_of(register, arch) >> shift,
            bytes.min(width).min(word),
        ),
        Location::GotDeref { symbol, offset, .. } | Location::SymbolAddress { symbol, offset } => {
            (near(symbol_value(symbol), *offset, arch), bytes)
        }
        location => (memory(address(location, arch), bytes), bytes),
    };
    let unused = 64 - 8 * u32::from(bytes);
    let signed = operand.is_signed() && !operand.float;
    let wide = if signed {
        ((bits << unused).cast_signed() >> unused).cast_unsigned()
    } else {
        bits << unused >> unused
    };
    let unused = 64 - 8 * u32::from(field.size);
    wide << unused >> unused
}

fn address(location: &Location, arch: Arch) -> u64 {
    let indexed = |address: &usdtrec_format::IndexedAddress| {
        let base = address.register.map_or(0, |base| value_of(base, arch));
        base.wrapping_add(value_of(address.index, arch).wrapping_mul(address.scale.into()))
            .wrapping_add_signed(address.offset)
    };
    let address = match location {
        Location::RegisterDeref { register, offset } => {
            value_of(*register, arch).wrapping_add_signed(*offset)
        }
        Location::Indexed(address) => indexed(address),
        Location::SymbolDeref {
            symbol,
            offset,
            register,
            reloc,
        } => {
            let base = register
                .filter(|register| reloc.is_none() && *register != Register::PROGRAM_COUNTER)
                .map_or(0, |register| value_of(register, arch));
            near(symbol_value(symbol), *offset, arch).wrapping_add(base)
        }
        Location::SymbolIndexed {
            symbol, address, ..
        } => near(symbol_value(symbol), 0, arch).wrapping_add(indexed(address)),
        Location::Absolute { address } => address.cast_unsigned(),
        Location::Segment { inner, .. } => THREAD.wrapping_add(self::address(inner, arch)),
        other => panic!("{other:?} is no memory"),
    };
    narrow(address, arch)
}

/// The address of a symbol in the running program.
fn near(value: u64, offset: i64, arch: Arch) -> u64 {
    let address = register_value(instruction_pointer(arch) as usize)
        .wrapping_sub(PC)
        .wrapping_add(value)
        .wrapping_add_signed(offset);
    narrow(address, arch)
}

fn narrow(address: u64, arch: Arch) -> u64 {
    if arch.pointer_size() == 4 {
        address & 0xffff_ffff
    } else {
        address
    }
}

fn value_of(register: Register, arch: Arch) -> u64 {
    register_value(register_offset(arch, register).unwrap() as usize)
}

fn memory(address: u64, bytes: u8) -> u64 {
    (0..u64::from(bytes)).rev().fold(0, |word, index| {
        word << 8 | u64::from(byte_at(address.wrapping_add(index)))
    })
}

fn word(record: &[u8], at: usize, bytes: usize) -> u64 {
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&record[at..at + bytes]);
    u64::from_le_bytes(word)
}

/// Runs the program of an argument string and checks its record; how many values it held.
fn check(args: &str, arch: Arch, strings: Strings) -> usize {
    let planned = Planned::new(args, arch, strings);
    let record = planned.run(&Hit::default(), &common()).unwrap();
    let room = rooms(&planned.layout).of_record(record.len());
    assert!(room.is_some(), "{args}");
    let raw = usize::from(planned.layout.size);
    assert_eq!((raw + 4) % 8, 0, "{args}");
    assert_eq!(word(&record, 48, 4), raw as u64, "{args}");
    let mut count = 0;
    for (operand, field) in planned.fields() {
        let at = RAW + usize::from(field.offset);
        let found = word(&record, at, field.size.into());
        let right = expected(operand, field, arch);
        assert_eq!(
            found, right,
            "{operand:?} of {args}: {found:#x}, {right:#x}"
        );
        if let Some(string) = field.string {
            check_string(&record, right, arch, usize::from(string.status));
        }
        count += 1;
    }
    if let Some(missing) = planned.layout.missing {
        assert_eq!(word(&record, RAW + usize::from(missing), 4), 0, "{args}");
    }
    let mut out = Vec::new();
    assert!(compact(&record, planned.shape(), &mut out), "{args}");
    count
}

fn check_string(record: &[u8], address: u64, arch: Arch, status: usize) {
    let status = word(record, RAW + status, 2) as i16;
    let tag = if arch.ignores_top_byte() { 8 } else { 0 };
    let address = address << tag >> tag;
    let right = if address < 0x1_0000 || address >> arch.address_bits() != 0 {
        -14
    } else {
        string_len(address).min(usize::from(STRINGS.limit) + 1) as i16 + 1
    };
    assert_eq!(status, right, "string at {address:#x}");
}

/// A string of 62 letters fits into 64 bytes; of 63 it may have been cut.
#[test]
fn a_string_takes_the_room_that_it_needs() {
    let strings = Strings {
        limit: 256,
        known: true,
    };
    let planned = Planned::new("8@%rdi", Arch::X86_64, strings);
    let code = generate(&[&planned.spec()], &common()).unwrap();
    let rdi = register_offset(Arch::X86_64, Arch::X86_64.register("rdi").unwrap()).unwrap();
    let fixed = RAW + usize::from(planned.layout.size);
    let run = |letters: u64, are_long: bool| {
        let mut hit = Hit::default();
        let word = &mut hit.context[rdi as usize / 8];
        *word = *word & !0x1ff | letters;
        // After the words of 16 strings.
        hit.habits = vec![0; 32];
        hit.habits.push(are_long.into());
        let ran = hit.run_all(&code);
        let record = ran.record.unwrap();
        let mut out = Vec::new();
        assert!(compact(&record, planned.shape(), &mut out));
        let string: Vec<u8> = (0..letters.min(256))
            .map(|at| b'a' + (at % 26) as u8)
            .collect();
        let found = out.windows(string.len() + 1);
        let with_nul = [string.as_slice(), &[0]].concat();
        assert!(
            found.into_iter().any(|bytes| bytes == with_nul),
            "{letters}"
        );
        assert_eq!(
            is_long(&record, &planned.layout, rooms(&planned.layout)),
            Some(letters >= 63)
        );
        (record.len() - fixed, ran.discarded)
    };
    for letters in [0, 1, 62] {
        assert_eq!(run(letters, false), (64, 0), "{letters} letters");
    }
    for letters in [63, 64, 255, 256, 257, 300] {
        assert_eq!(run(letters, false), (264, 1), "{letters} letters");
        assert_eq!(run(letters, true), (264, 0), "long strings are expected");
    }
    assert_eq!(run(5, true), (264, 0));
}

#[test]
fn operands_of_real_programs() {
    let mut values = 0;
    for name in [
        "notes-amd64.jsonl",
        "notes-synth.jsonl",
        "arg-vectors.jsonl",
    ] {
        for args in arguments(name, "x86_64") {
            let auto = Strings {
                known: false,
                ..STRINGS
            };
            for strings in [STRINGS, auto, Strings::default()] {
                values += check(&args, Arch::X86_64, strings);
            }
        }
    }
    assert!(values > 1000, "{values} values");
}

#[test]
fn operands_of_32_bit_programs() {
    let mut values = 0;
    for name in ["notes-i386.jsonl", "notes-synth.jsonl", "arg-vectors.jsonl"] {
        for args in arguments(name, "i386") {
            values += check(&args, Arch::I386, STRINGS);
        }
    }
    assert!(values > 500, "{values} values");
}

#[test]
fn operands_of_arm64_programs() {
    let mut values = 0;
    for args in arguments("notes-arm64.jsonl", "aarch64") {
        values += check(&args, Arch::Aarch64, STRINGS);
    }
    assert!(values > 500, "{values} values");
    let forms = "8@x0 -4@w1 8@[sp, 8] -2@[x29, -24] 8@[x2] 1@[x3, x4] 8@x30 8f@x5 4f@[sp, 4] 8@[x6, x7, lsl 3]";
    assert_eq!(check(forms, Arch::Aarch64, STRINGS), 10);
}

/// A tag stays in the value, and is removed from the address that is read.
#[test]
fn tagged_addresses_of_arm64_programs() {
    const TAG: u64 = 0xab << 56;
    let planned = Planned::new("8@x0 8@[x0, 8]", Arch::Aarch64, STRINGS);
    let untagged = register_value(0);
    let mut hit = Hit::default();
    hit.context[0] |= TAG;
    let record = planned.run(&hit, &common()).unwrap();
    let fields: Vec<_> = planned.fields().map(|(_, field)| field).collect();
    let value = |place: usize| word(&record, RAW + usize::from(fields[place].offset), 8);
    assert_eq!(value(0), untagged | TAG);
    assert_eq!(value(1), memory(untagged + 8, 8));
    let string = fields[0].string.unwrap();
    check_string(
        &record,
        untagged | TAG,
        Arch::Aarch64,
        usize::from(string.status),
    );
}

#[test]
fn forms_that_no_compiler_is_sure_to_write() {
    for args in [
        "1@%ah -1@%bh 2@%ax -2@%r9w 4@%r10d -8@%r15 1@%sil",
        "8@-128(%rsp) -2@65536(%rbp) 4@(,%rcx,8) 8@-5000000000(%rax,%rdx,4)",
        "8@sym(%rip) 4@8+sym(%rip) -1@sym-3(%rip) 8@sym@GOTPCREL(%rip) 4@arr(,%rdi,4)",
        "8@%fs:0x28 4@%fs:(%rax) 8@%fs:0x10(%rax,%rbx,2)",
        "8f@%rax 4f@%edx 8f@8(%rsp) 4f@sym(%rip) 8f@%xmm0 16@%rax -16@-32(%rbp)",
    ] {
        assert!(check(args, Arch::X86_64, STRINGS) > 0, "{args}");
    }
    let args = "4@sym 4@arr(,%edi,4) -2@-4(%esp) 8@%eax 4@-1(%eax,%ecx,8)";
    assert!(check(args, Arch::I386, STRINGS) > 0, "{args}");
}

#[test]
fn the_head_of_a_record() {
    let planned = Planned::new("4@%edi", Arch::X86_64, STRINGS);
    let record = planned.run(&Hit::default(), &common()).unwrap();
    let of = |at, bytes| word(&record, at, bytes);
    assert_eq!((of(0, 4), of(4, 2), of(6, 2)), (9, 2, record.len() as u64));
    assert_eq!(of(8, 8), 0x42, "the id");
    assert_eq!(
        of(16, 8),
        register_value(instruction_pointer(Arch::X86_64) as usize)
    );
    assert_eq!((of(24, 4), of(28, 4)), (1234, 1235), "process, thread");
    assert_eq!(of(32, 8), NOW);
    assert_eq!((of(40, 4), of(44, 4)), (3, UID + 1), "CPU, user");
    assert_eq!(of(RAW, 2), 0x2711, "the type");
    assert_eq!((of(RAW + 2, 2), of(END_SIZE, 4)), (0, 0));
}

#[test]
fn a_program_of_one_site_needs_no_cookies_of_the_kernel() {
    let planned = Planned::new("8@%rdi", Arch::X86_64, Strings::default());
    let hit = Hit::default();
    let without = Hit {
        cookie: 0xdead,
        ..Hit::default()
    };
    assert_eq!(
        planned.run_with(Some(hit.cookie), &without, &common()),
        planned.run(&hit, &common())
    );
}

/// A program of many sites does at each what a program of that site alone does.
#[test]
fn a_cookie_chooses_the_variant() {
    let sites: Vec<Planned> = arguments("arg-vectors.jsonl", "x86_64")
        .iter()
        .take(100)
        .map(|args| Planned::new(args, Arch::X86_64, STRINGS))
        .collect();
    assert!(sites.len() > 10);
    let specs: Vec<Spec<'_>> = sites.iter().map(Planned::spec).collect();
    let all = generate(&specs.iter().collect::<Vec<_>>(), &common()).unwrap();
    for (number, spec) in specs.iter().enumerate() {
        let hit = Hit {
            cookie: Hit::default().cookie | (number as u64) << 32,
            ..Hit::default()
        };
        let alone = generate(&[spec], &common()).unwrap();
        assert_eq!(hit.run(&all), hit.run(&alone), "variant {number}");
    }
}

#[test]
fn hits_that_do_not_count_write_nothing() {
    let planned = Planned::new("4@%edi", Arch::X86_64, STRINGS);
    let runs = |hit: &Hit, common: &Common| planned.run(hit, common).is_some();
    let closed = Hit {
        enabled: false,
        ..Hit::default()
    };
    assert!(!runs(&closed, &common()));
    for (cpus, counts) in [
        (vec![3], true),
        (vec![0, 1, 2, 4, 5, 6, 7, 8, 9], false),
        (vec![0, 2, 3, 4, 5], true),
    ] {
        let common = Common {
            cpus: Some(CpuRange::from_cpus(&cpus)),
            ..common()
        };
        assert_eq!(runs(&Hit::default(), &common), counts, "CPU 3 in {cpus:?}");
    }
    let apart = |links: u32, is_everywhere: bool| {
        let common = Common {
            recorded: RecordedProcesses::Apart,
            ..common()
        };
        let hit = Hit {
            tracked: [1234].into(),
            links,
            cookie: u64::from(is_everywhere) << 30,
            ..Hit::default()
        };
        runs(&hit, &common)
    };
    assert!(apart(LINKED, false), "a link of its own");
    assert!(!apart(LINKED, true), "the link of all, too");
    assert!(apart(FOLLOWED, true));
    assert!(!apart(FOLLOWED, false), "it got links while it is held");
    for (recorded, id, counts) in [
        (RecordedProcesses::Processes, 1234, true),
        (RecordedProcesses::Processes, 1235, false),
        (RecordedProcesses::Threads, 1235, true),
        (RecordedProcesses::Threads, 1234, false),
    ] {
        let common = Common {
            recorded,
            ..common()
        };
        let hit = Hit {
            tracked: [id].into(),
            ..Hit::default()
        };
        assert_eq!(runs(&hit, &common), counts, "{recorded:?} {id}");
    }
}

#[test]
fn a_fault_is_never_a_value() {
    let planned = Planned::new("8@(%rdi) -4@%esi 4@(%rdx)", Arch::X86_64, STRINGS);
    let rdi = value_of(Arch::X86_64.register("rdi").unwrap(), Arch::X86_64);
    let hit = Hit {
        forbidden: std::iter::once(rdi..rdi + 4).collect(),
        ..Hit::default()
    };
    let record = planned.run(&hit, &common()).unwrap();
    let missing = usize::from(planned.layout.missing.unwrap());
    assert_eq!(word(&record, RAW + missing, 4), 1, "the first of two reads");
    let fields: Vec<RawField> = planned.fields().map(|(_, field)| field).collect();
    let status = usize::from(fields[0].string.unwrap().status);
    assert_eq!(word(&record, RAW + status, 2) as i16, -14);
    for (operand, field) in planned.fields().skip(1) {
        let found = word(&record, RAW + usize::from(field.offset), field.size.into());
        assert_eq!(found, expected(operand, field, Arch::X86_64));
    }
}

#[test]
fn what_is_unreadable_again_and_again_is_left_alone_for_a_while() {
    let of = |known: bool, habits: [u64; 2]| {
        let strings = Strings { known, ..STRINGS };
        let planned = Planned::new("8@%rdi", Arch::X86_64, strings);
        let hit = Hit {
            habits: habits.to_vec(),
            ..Hit::default()
        };
        let record = planned.run(&hit, &common()).unwrap();
        let string = planned.layout.strings().next().unwrap();
        word(&record, RAW + usize::from(string.status), 2) as i16
    };
    assert_eq!(of(false, [31, 0]), 102, "not often enough");
    assert_eq!(of(false, [32, NOW + 1]), -11, "until then");
    assert_eq!(of(false, [32, NOW]), 102, "tried again");
    assert_eq!(of(true, [32, NOW + 1]), 102, "known to be a string");
}

#[test]
fn many_long_strings() {
    let args = vec!["8@%rdi"; 14].join(" ");
    let strings = Strings {
        limit: 4096,
        known: true,
    };
    let planned = Planned::new(&args, Arch::X86_64, strings);
    let record = planned.run(&Hit::default(), &common()).unwrap();
    assert!(record.len() > 50_000);
    let of = |register| value_of(Arch::X86_64.register(register).unwrap(), Arch::X86_64);
    let len = string_len(of("rdi"));
    let rooms = &record[RAW + usize::from(planned.layout.size)..];
    for room in rooms.chunks(rooms.len() / 14) {
        assert_eq!(room.iter().position(|byte| *byte == 0), Some(len));
    }
    let reads = vec!["8@(%rdi)"; 40].join(" ");
    check(&reads, Arch::X86_64, Strings::default());
}
