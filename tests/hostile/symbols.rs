//! Programs whose tables of names, lines and callers lie: bounded time and memory, and the names of other programs are there.

use std::io::Write as _;
use std::process::{Command, Stdio};

use object::elf::{CompressionType, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};

use crate::child;
use crate::crafted::{Crafted, PLACES, Program, Stored};

const MIB: u64 = 1 << 20;

/// Shows the stacks of a program in each way that reads its tables.
#[track_caller]
fn shown(what: &str, sound: &Program, crafted: &Program) -> String {
    let made = Crafted::new(sound, crafted);
    let mut all = String::new();
    for words in [
        &["report", "-g"][..],
        &["report", "--sort", "srcline,stack"],
        &["script", "-F", "ip,sym,dso,srcline"],
    ] {
        eprintln!("{what}: {words:?}");
        let ran = child::run(words, made.trace.path(), 256 * MIB);
        ran.assert_well();
        assert!(
            ran.out.contains("inner"),
            "{what}: {words:?}: {:.500}",
            ran.out
        );
        all += &ran.out;
    }
    // Each event of the sound program has its inlined function.
    let inner = all.lines();
    let inner = inner.filter(|line| line.ends_with(" inner"));
    assert!(inner.count() >= PLACES as usize, "{what}: {all:.4000}");
    all
}

/// The function's name is a symbol of both programs.
#[track_caller]
fn checked(what: &str, sound: &Program, crafted: &Program) -> String {
    let all = shown(what, sound, crafted);
    let crafted = all.lines().filter(|line| line.contains("/crafted)"));
    let outer = crafted.filter(|line| line.contains(" outer"));
    assert!(outer.count() >= PLACES as usize, "{what}: {all:.3000}");
    all
}

#[track_caller]
fn check(what: &str, sound: &Program, crafted: &Program) {
    drop(checked(what, sound, crafted));
}

/// The report says of the crafted program that its tables are left out.
#[track_caller]
fn check_long(what: &str, sound: &Program, crafted: &Program) {
    let all = checked(what, sound, crafted);
    let (_, files) = all
        .split_once("has tables that are too long to be read\n")
        .unwrap_or_else(|| panic!("{what}: {all:.3000}"));
    let file = files.lines().next().unwrap_or_default();
    assert!(file.trim().ends_with("/crafted"), "{what}: {file}");
}

fn uleb(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_uleb(&mut bytes, number);
    bytes
}

fn push_uleb(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Compile units, inlined calls and functions: [`unit`] and [`call`] make entries by them.
const ABBREVIATIONS: &[u8] = &[
    // DW_TAG_compile_unit with children: low_pc addr, high_pc data8, stmt_list sec_offset
    1, 0x11, 1, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0,
    // DW_TAG_inlined_subroutine with children: abstract_origin ref4, low_pc addr, high_pc data8
    2, 0x1d, 1, 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0,
    // DW_TAG_subprogram: abstract_origin ref4
    3, 0x2e, 0, 0x31, 0x13, 0, 0, // DW_TAG_compile_unit: ranges sec_offset
    4, 0x11, 0, 0x55, 0x17, 0, 0, 0,
];

/// Offset of the first entry after that of a unit.
const FIRST: u32 = 12 + 21;

/// A unit of DWARF 5 with the table of abbreviations at an offset.
fn unit(abbreviations: u32, entries: &[u8]) -> Vec<u8> {
    let mut bytes = (8 + entries.len() as u32).to_le_bytes().to_vec();
    bytes.extend([5, 0, 1, 8]);
    bytes.extend(abbreviations.to_le_bytes());
    bytes.extend(entries);
    bytes
}

/// The entry of a unit with this code.
fn code_of_unit(low: u64, size: u64, lines: u32) -> Vec<u8> {
    let words = [low, size].into_iter().flat_map(u64::to_le_bytes);
    std::iter::once(1)
        .chain(words)
        .chain(lines.to_le_bytes())
        .collect()
}

fn call(origin: u32, low: u64, size: u64) -> Vec<u8> {
    let words = [low, size].into_iter().flat_map(u64::to_le_bytes);
    let entry = std::iter::once(2).chain(origin.to_le_bytes());
    entry.chain(words).collect()
}

/// The origin of a call is itself, or goes round in a circle.
#[test]
fn circles_of_origins_end() {
    let sound = Program::new();
    let (low, size) = (sound.inside - 8, 64);
    let code = code_of_unit(low, size, 0);
    let mut itself = code.clone();
    itself.extend(call(FIRST, low, size));
    itself.extend([0, 0]);
    let mut circle = code;
    let function = FIRST + 21 + 1;
    circle.extend(call(function, low, size));
    circle.push(0);
    circle.extend(std::iter::once(3).chain((function + 5).to_le_bytes()));
    circle.extend(std::iter::once(3).chain(function.to_le_bytes()));
    circle.push(0);
    for (what, entries) in [("itself", itself), ("a circle", circle)] {
        let crafted = sound.clone();
        let crafted = crafted.with(".debug_abbrev", ABBREVIATIONS, Stored::Plain);
        let crafted = crafted.with(".debug_info", &unit(0, &entries), Stored::Plain);
        check(what, &sound, &crafted);
    }
}

#[test]
fn very_many_calls_within_each_other_are_left_out() {
    let sound = Program::new();
    let (low, size) = (sound.inside - 8, 64);
    let mut entries = code_of_unit(low, size, 0);
    entries.extend(call(FIRST, low, size).repeat(400_000));
    let crafted = sound.clone();
    let crafted = crafted.with(".debug_abbrev", ABBREVIATIONS, Stored::Plain);
    let crafted = crafted.with(".debug_info", &unit(0, &entries), Stored::Plain);
    check_long("deep calls", &sound, &crafted);
}

/// A list that thousands of units name.
#[test]
fn lists_that_are_named_very_often_are_read_within_limits() {
    let sound = Program::new();
    let ranges: Vec<u8> = (0..1500_u64)
        .flat_map(|at| {
            // DW_RLE_start_length
            let begin = (sound.inside + at).to_le_bytes();
            std::iter::once(7).chain(begin).chain([1])
        })
        .chain([0])
        .collect();
    let mut lists = (8 + ranges.len() as u32).to_le_bytes().to_vec();
    lists.extend([5, 0, 8, 0, 0, 0, 0, 0]);
    lists.extend(ranges);
    let mut entry = vec![4];
    entry.extend(12_u32.to_le_bytes());
    let units = unit(0, &entry).repeat(1500);
    let crafted = sound.clone();
    let crafted = crafted.with(".debug_abbrev", ABBREVIATIONS, Stored::Plain);
    let crafted = crafted.with(".debug_info", &units, Stored::Plain);
    // Whether the compiler made such a section or not, it is the first one.
    let crafted = crafted.named(".comment", ".debug_rnglists", &lists);
    check("shared ranges", &sound, &crafted);
}

/// Tables of lines whose files take a byte each, for each address another one.
#[test]
fn tables_of_lines_with_very_many_files_are_left_out() {
    let sound = Program::new();
    let files: usize = 500_000;
    let mut header = vec![1, 1, 1, 0xfb, 14, 1];
    for _ in 0..2 {
        // One form: DW_LNCT_path, DW_FORM_udata.
        header.extend([1, 1, 0x0f]);
        header.extend(uleb(files as u64 / 2));
        header.extend(std::iter::repeat_n(0, files / 2));
    }
    let mut table = (8 + header.len() as u32).to_le_bytes().to_vec();
    table.extend([5, 0, 8, 0]);
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    let units: Vec<u8> = (0..PLACES)
        .flat_map(|at| {
            let lines = table.len() as u32 * at as u32;
            let mut entries = code_of_unit(sound.inside + at, 1, lines);
            entries.push(0);
            unit(0, &entries)
        })
        .collect();
    let crafted = sound.clone();
    let crafted = crafted.with(".debug_abbrev", ABBREVIATIONS, Stored::Plain);
    let crafted = crafted.with(".debug_info", &units, Stored::Plain);
    let crafted = crafted.with(".debug_line", &table.repeat(PLACES as usize), Stored::Plain);
    check_long("files", &sound, &crafted);
}

/// Each byte of a table of lines is a row.
#[test]
fn rows_of_lines_have_a_limit() {
    let sound = Program::new();
    // Lengths, is_stmt, line_base 0, line_range 1, opcode_base 1: all opcodes are special ones.
    let mut header = vec![1, 1, 1, 0, 1, 1];
    // One directory and one file, with one form: DW_LNCT_path, DW_FORM_udata.
    header.extend([1, 1, 0x0f, 1, 0].repeat(2));
    let mut program = vec![0, 9, 2];
    program.extend(sound.inside.to_le_bytes());
    // Opcode 1 advances nothing.
    program.extend(std::iter::repeat_n(1, (1 << 21) + 1));
    program.extend([0, 1, 1]);
    let mut table = (8 + header.len() as u32 + program.len() as u32)
        .to_le_bytes()
        .to_vec();
    table.extend([5, 0, 8, 0]);
    table.extend((header.len() as u32).to_le_bytes());
    table.extend(header);
    table.extend(program);
    let mut entries = code_of_unit(sound.inside - 8, 64, 0);
    entries.push(0);
    let crafted = sound.clone();
    let crafted = crafted.with(".debug_abbrev", ABBREVIATIONS, Stored::Plain);
    let crafted = crafted.with(".debug_info", &unit(0, &entries), Stored::Plain);
    let crafted = crafted.with(".debug_line", &table, Stored::Plain);
    check_long("rows", &sound, &crafted);
}

/// Entries of tables of abbreviations take twenty times as much memory as in the file.
#[test]
fn tables_of_very_many_abbreviations_are_left_out() {
    let sound = Program::new();
    let table = |first: u64, count: u64| -> Vec<u8> {
        let mut bytes = ABBREVIATIONS[..11].to_vec();
        for code in first..first + count {
            push_uleb(&mut bytes, code);
            bytes.extend_from_slice(&[0x2e, 0, 0, 0]);
        }
        bytes.push(0);
        bytes
    };
    for (what, tables) in [
        ("one table", vec![table(2, 4 << 20)]),
        (
            "many tables",
            (0..PLACES).map(|at| table(2 + at, 100_000)).collect(),
        ),
    ] {
        let mut units = Vec::new();
        let mut all: Vec<u8> = Vec::new();
        for (at, table) in tables.iter().enumerate() {
            let mut entries = code_of_unit(sound.inside + at as u64, 1, 0);
            entries.push(0);
            units.extend(unit(all.len() as u32, &entries));
            all.extend(table);
        }
        let crafted = sound.clone();
        let crafted = crafted.with(".debug_abbrev", &all, Stored::Plain);
        let crafted = crafted.with(".debug_info", &units, Stored::Plain);
        match tables.len() {
            1 => check_long(what, &sound, &crafted),
            _ => check(what, &sound, &crafted),
        }
    }
}

#[test]
fn what_compressed_sections_claim_is_not_believed() {
    let sound = Program::new();
    let zeros = vec![0; 64 << 20];
    let bomb = zstd::encode_all(&*zeros, 19).unwrap();
    for section in [".debug_info", ".debug_line"] {
        for (kind, claimed) in [
            (ELFCOMPRESS_ZLIB, 1 << 60),
            (ELFCOMPRESS_ZSTD, 1 << 60),
            (ELFCOMPRESS_ZSTD, u64::MAX),
            (ELFCOMPRESS_ZSTD, 64 << 20),
            (ELFCOMPRESS_ZSTD, 16 * bomb.len() as u64),
            (ELFCOMPRESS_ZLIB, 100),
            (CompressionType(77), 100),
        ] {
            let stored = Stored::Compressed(kind, claimed);
            let crafted = sound.clone().with(section, &bomb, stored);
            check(&format!("{section} {kind} {claimed}"), &sound, &crafted);
        }
    }
}

#[test]
fn sections_that_are_said_to_be_long_are_left_out() {
    let sound = Program::new();
    for section in [
        ".eh_frame",
        ".debug_info",
        ".debug_line",
        ".debug_str",
        ".debug_abbrev",
        ".gnu_debugdata",
    ] {
        for size in [u64::MAX, 1 << 32, 400 << 20] {
            let crafted = sound.clone().claiming(section, size);
            check(&format!("{section} {size:#x}"), &sound, &crafted);
        }
    }
    // Entries of the unwind table that are longer than all of it, or have no end.
    for length in [[0xff; 4], [0xff, 0xff, 0xff, 0x7f], [1, 0, 0, 0]] {
        let table = length.repeat(1 << 18);
        let crafted = sound.clone().with(".eh_frame", &table, Stored::Plain);
        check("lengths of entries", &sound, &crafted);
    }
}

/// Compresses with xz.
fn xz(data: &[u8]) -> Vec<u8> {
    let mut command = Command::new("xz");
    command.args(["-0", "-T1", "--stdout", "--quiet"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let data = data.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&data).unwrap());
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(out.status.success());
    out.stdout
}

/// The program has no other symbols.
#[test]
fn compressed_symbols_are_decompressed_within_limits() {
    let sound = Program::new();
    let small = xz(b"no ELF file");
    let mut dictionary = small.clone();
    // The size of the dictionary in the header of the block: 4 GiB - 1.
    dictionary[16] = 40;
    let sum = crc32fast::hash(&dictionary[12..20]);
    dictionary[20..24].copy_from_slice(&sum.to_le_bytes());
    // An ELF file that is full of symbols.
    let entry = {
        let mut entry = vec![1, 0, 0, 0, 0x12, 0, 1, 0];
        entry.extend(sound.inside.to_le_bytes());
        entry.extend(64_u64.to_le_bytes());
        entry
    };
    let symbols = |bytes: usize| {
        let full = sound.clone();
        full.with(".symtab", &entry.repeat(bytes / 24), Stored::Plain)
    };
    for (what, data) in [
        ("zeros", xz(&vec![0; 200 << 20])),
        ("a large dictionary", dictionary),
        ("half of it", small[..small.len() / 2].to_vec()),
        ("symbols", xz(&symbols(20 << 20).bytes)),
        ("very many symbols", xz(&symbols(60 << 20).bytes)),
    ] {
        let crafted = sound.clone().claiming(".symtab", 0);
        let crafted = crafted.with(".gnu_debugdata", &data, Stored::Plain);
        shown(what, &sound, &crafted);
    }
}
