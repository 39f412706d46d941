//! The examples run, and what one writes the other reads.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "what does not hold in a test is a failed test; the examples' own main functions are not called"
)]

#[path = "../examples/list_probes.rs"]
mod list_probes;
#[path = "../examples/print_trace.rs"]
mod print_trace;
#[path = "../examples/write_trace.rs"]
mod write_trace;

use std::path::Path;

fn printed(path: &Path) -> String {
    let mut out = Vec::new();
    print_trace::run(path, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_written_is_printed() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    write_trace::run(&path).unwrap();
    let printed = printed(&path);
    assert_eq!(printed.lines().count(), 10);
    assert_eq!(
        printed.lines().next().unwrap(),
        "0.001000 42 sdt_app:start 0x401136"
    );
}

#[test]
fn a_trace_of_stock_perf_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/traces/stock-6.1.data");
    let printed = printed(&path);
    assert_eq!(printed.lines().count(), 80);
    let lines_with = |name: &str| printed.lines().filter(|line| line.contains(name)).count();
    assert_eq!(
        lines_with("sdt_tick:loop1") + lines_with("sdt_tick:loop2"),
        80
    );
    assert!(
        lines_with("sdt_tick:loop1") > 0 && lines_with("sdt_tick:loop2") > 0,
        "{printed}"
    );
}

/// An ELF file of x86-64 with one section of notes, as bytes.
fn elf(notes: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.note.stapsdt\0.shstrtab\0";
    const HEADER: u64 = 64;
    let notes_len = u64::try_from(notes.len()).unwrap();
    let names_len = u64::try_from(NAMES.len()).unwrap();
    let names_at = HEADER + notes_len;
    let sections_at = (names_at + names_len).next_multiple_of(8);
    // Class 64, little-endian, version 1; an executable for machine 62, version 1.
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    // Entry, program headers, section headers; flags.
    for word in [0, 0, sections_at] {
        file.extend(word.to_le_bytes());
    }
    file.extend([0; 4]);
    // Sizes and numbers: this header, program headers, section headers (3), the section of names (2).
    for half in [64_u16, 0, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend(notes);
    file.extend(NAMES);
    file.resize(usize::try_from(sections_at).unwrap(), 0);
    // Name, type, offset, size.
    for [name, kind, offset, size] in [
        [0, 0, 0, 0],
        [1, 7, HEADER, notes_len],
        [15, 3, names_at, names_len],
    ] {
        file.extend(u32::try_from(name).unwrap().to_le_bytes());
        file.extend(u32::try_from(kind).unwrap().to_le_bytes());
        for word in [0, 0, offset, size, 0, 4, 0] {
            file.extend(word.to_le_bytes());
        }
    }
    file
}

#[test]
fn probes_of_a_file_are_listed() {
    let mut descriptor = Vec::new();
    for word in [0x1110_u64, 0x2024, 0x4030] {
        descriptor.extend(word.to_le_bytes());
    }
    descriptor.extend(b"app\0hit\x004@%eax\0");
    let mut note = Vec::new();
    for word in [8, u32::try_from(descriptor.len()).unwrap(), 3] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"stapsdt\0");
    note.extend(&descriptor);
    note.resize(note.len().next_multiple_of(4), 0);
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, elf(&note)).unwrap();
    let mut out = Vec::new();
    list_probes::run(&path, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "app:hit at 0x1110\n  arg1: u32 in eax\n"
    );
}
