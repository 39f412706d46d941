//! Reading probes out of ELF files made byte by byte, whole and damaged.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::common::{
    AARCH64, ARM, BASE, CODE, DATA, ElfSpec, Files, I386, NOTES, NoteSpec, S390X, SEGMENT, X86_64,
};
use usdtrec_buildid_cache::elf::{self, ElfError, read_binary, scan};
use usdtrec_format::Arch;

/// All four layouts, each with a machine that has it.
const LAYOUTS: [(bool, bool, u16, Option<Arch>); 5] = [
    (true, false, X86_64, Some(Arch::X86_64)),
    (true, true, S390X, Some(Arch::S390x)),
    (false, false, I386, Some(Arch::I386)),
    (false, false, ARM, Some(Arch::Arm)),
    // Big-endian 32-bit Arm: read, its registers unknown.
    (false, true, ARM, None),
];

/// Two probes, one of them at two sites; the file was moved by `shift` after linking (prelink). 32-bit
/// addresses wrap at 32 bits.
fn prelinked(spec: ElfSpec, shift: u64) -> ElfSpec {
    let linked = |address: u64| address.wrapping_sub(shift);
    let at = |offset| linked(CODE.0 + offset);
    let (base, semaphore) = (linked(BASE), linked(DATA.0 + 2));
    spec.probe(
        "tick",
        "loop",
        [at(0x10), base, semaphore],
        "-4@%eax 8@%rdi",
    )
    .probe("tick", "none", [at(0x20), base, 0], "")
    .probe("tick", "loop", [at(0x30), base, semaphore], "-4@$7 8@%rsi")
}

#[test]
fn every_layout_and_prelink_shift() {
    let files = Files::new();
    for (class64, big_endian, machine, arch) in LAYOUTS {
        for shift in [0, 0x1000, 0_u64.wrapping_sub(0x2_0000)] {
            let spec = ElfSpec::new(class64, big_endian, machine);
            let path = files.write("elf", &prelinked(spec, shift).bytes());
            let found = scan(&path).unwrap();
            assert!(!found.debug_file && found.damaged.is_empty());
            let binary = found.binary;
            assert_eq!(binary.arch, arch);
            assert_eq!(
                binary.build_id.unwrap().as_bytes(),
                (1..=20).collect::<Vec<u8>>()
            );
            let names: Vec<String> = binary.probes.iter().map(|probe| probe.event()).collect();
            assert_eq!(names, ["sdt_tick:loop", "sdt_tick:none"]);
            let sites = &binary.probes[0].sites;
            assert_eq!(sites.len(), 2);
            for (site, offset) in sites.iter().zip([0x10, 0x30]) {
                assert_eq!(site.pc, CODE.0 + offset);
                assert_eq!(site.offset, Some(CODE.1 + offset));
                assert_eq!(site.semaphore, DATA.0 + 2);
                assert_eq!(site.semaphore_offset, Some(DATA.1 + 2));
            }
            let mask = if class64 { u64::MAX } else { 0xffff_ffff };
            assert_eq!(sites[0].base, BASE.wrapping_sub(shift) & mask);
            assert_eq!(sites[1].args, "-4@$7 8@%rsi");
            assert_eq!(binary.probes[1].sites[0].semaphore, 0);
            assert_eq!(binary.probes[1].sites[0].semaphore_offset, None);
        }
    }
}

/// A base of 0 says nothing: addresses stay as they are.
#[test]
fn unknown_base_shifts_nothing() {
    let files = Files::new();
    let spec = ElfSpec::x86_64().probe("p", "n", [CODE.0, 0, DATA.0], "");
    let binary = read_binary(&files.write("elf", &spec.bytes())).unwrap();
    assert_eq!(binary.probes[0].sites[0].pc, CODE.0);
    assert_eq!(binary.probes[0].sites[0].semaphore_offset, Some(DATA.1));
}

/// Neither the bytes behind a segment's file content nor a semaphore cut in two by its end have an offset.
#[test]
fn addresses_outside_the_file_have_no_offset() {
    let files = Files::new();
    let end = DATA.0 + SEGMENT;
    let mut spec = ElfSpec::x86_64();
    for (pc, semaphore) in [
        (0x10, end),
        (CODE.0 + SEGMENT, end - 1),
        (u64::MAX, u64::MAX),
    ] {
        spec = spec.probe("p", "n", [pc, BASE, semaphore], "");
    }
    let binary = read_binary(&files.write("elf", &spec.bytes())).unwrap();
    assert_eq!(binary.probes[0].sites.len(), 3);
    for site in &binary.probes[0].sites {
        assert_eq!(
            (site.offset, site.semaphore_offset),
            (None, None),
            "{site:?}"
        );
    }
}

/// A build-id is a note of type 3 *and* of owner GNU; SDT notes are of type 3 too.
#[test]
fn a_probe_is_no_build_id() {
    let files = Files::new();
    let mut spec = ElfSpec::x86_64().probe("p", "n", [CODE.0, BASE, 0], "");
    spec.build_id = None;
    let binary = read_binary(&files.write("elf", &spec.bytes())).unwrap();
    assert_eq!(binary.build_id, None);
    assert_eq!(binary.probes.len(), 1);
    for odd in [vec![], vec![0; 65]] {
        spec.build_id = Some(odd);
        let path = files.write("odd", &spec.bytes());
        assert_eq!(elf::build_id(&path).unwrap(), None);
    }
    spec.build_id = Some(vec![7; 8]);
    let path = files.write("short", &spec.bytes());
    assert_eq!(elf::build_id(&path).unwrap().unwrap().as_bytes(), [7; 8]);
}

/// Notes of other owners and types are passed over, damaged ones are told of, the rest is read.
#[test]
fn odd_notes_cost_nothing() {
    let files = Files::new();
    let mut spec = ElfSpec::x86_64().probe("p", "first", [CODE.0, BASE, 0], "");
    let description = spec.notes[0].description.clone();
    for (owner, kind) in [("stapsdt", 4), ("GNU", 3), ("stapsdtx", 3), ("", 3)] {
        let description = description.clone();
        spec.notes.push(NoteSpec {
            owner,
            kind,
            description,
        });
    }
    spec.notes.push(NoteSpec {
        owner: "stapsdt",
        kind: 3,
        description: vec![1; 30],
    });
    let spec = spec.probe("p", "last", [CODE.0 + 1, BASE, 0], "");
    let found = scan(&files.write("elf", &spec.bytes())).unwrap();
    let names: Vec<&str> = found
        .binary
        .probes
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(names, ["first", "last"]);
    assert_eq!(found.damaged.len(), 1);
}

#[test]
fn relocatable_objects_are_refused() {
    let files = Files::new();
    let mut spec = ElfSpec::x86_64().probe("p", "n", [0, 0, 0], "");
    spec.kind = 1;
    let error = scan(&files.write("a.o", &spec.bytes())).unwrap_err();
    assert!(matches!(error, ElfError::Relocatable), "{error}");
    assert!(error.is_other_file());
}

#[test]
fn separate_debug_files_are_known() {
    let files = Files::new();
    let mut spec = prelinked(ElfSpec::x86_64(), 0);
    spec.debug_file = true;
    let path = files.write("a.debug", &spec.bytes());
    let found = scan(&path).unwrap();
    assert!(found.debug_file);
    assert_eq!(
        found.binary.probes.len(),
        2,
        "its notes are those of the program"
    );
    assert_eq!(found.binary.probes[0].sites[0].offset, None);
    assert!(matches!(read_binary(&path), Err(ElfError::DebugFile)));
}

#[test]
fn other_files_are_told_apart() {
    let files = Files::new();
    for bytes in [&b""[..], b"\x7fEL", b"#!/bin/sh\n", b"\x7fELX\x02\x01"] {
        let error = scan(&files.write("file", bytes)).unwrap_err();
        assert!(error.is_other_file(), "{bytes:?}: {error}");
    }
    for bytes in [
        &b"\x7fELF\x02\x01"[..],
        b"\x7fELF\x03\x01",
        b"\x7fELF\x01\x05aaaaaaaa",
    ] {
        let error = scan(&files.write("file", bytes)).unwrap_err();
        assert!(matches!(error, ElfError::Header(_)), "{bytes:?}: {error}");
    }
    assert!(
        scan(&files.path("")).unwrap_err().is_other_file(),
        "a directory"
    );
    assert!(matches!(scan(&files.path("none")), Err(ElfError::Io(_))));
}

/// Opening a FIFO would wait for a writer.
#[test]
fn fifos_are_not_opened() {
    let files = Files::new();
    let path = files.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    assert!(scan(&path).unwrap_err().is_other_file());
}

/// However a file is cut, it is read or refused; what is read is true.
#[test]
fn every_prefix_is_survived() {
    let files = Files::new();
    for (class64, big_endian, machine, _) in LAYOUTS {
        let whole = prelinked(ElfSpec::new(class64, big_endian, machine), 0x1000).bytes();
        let path = files.write("elf", &whole);
        let expected = scan(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        for len in (0..whole.len()).rev() {
            file.set_len(len as u64).unwrap();
            if let Ok(found) = scan(&path) {
                assert_eq!(found.binary.probes, expected.binary.probes, "cut at {len}");
            }
        }
    }
}

/// Any byte may be wrong: nothing panics, hangs, or takes memory for what a header claims.
#[test]
fn every_garbled_byte_is_survived() {
    let files = Files::new();
    for (class64, big_endian, machine, _) in LAYOUTS {
        let whole = prelinked(ElfSpec::new(class64, big_endian, machine), 0x1000).bytes();
        let path = files.write("elf", &whole);
        let file = File::options().write(true).open(&path).unwrap();
        for (at, &byte) in whole.iter().enumerate() {
            for garbled in [!byte, 0xff, 0, byte ^ 1] {
                file.write_all_at(&[garbled], at as u64).unwrap();
                let _ = scan(&path);
                let _ = elf::build_id(&path);
            }
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        assert_eq!(scan(&path).unwrap().binary.probes.len(), 2);
    }
}

/// A section that claims more than the file holds, and one that claims much of a sparse file.
#[test]
fn claims_are_not_believed() {
    let files = Files::new();
    let whole = prelinked(ElfSpec::x86_64(), 0).bytes();
    let sections = u64::from_le_bytes(whole[40..48].try_into().unwrap()) as usize;
    let size_at = sections + 5 * 64 + 32;
    for claim in [1 << 20, 1 << 40, u64::MAX] {
        let mut bytes = whole.clone();
        bytes[size_at..][..8].copy_from_slice(&claim.to_le_bytes());
        let path = files.write("elf", &bytes);
        let error = scan(&path).unwrap_err();
        assert!(error.to_string().contains(".note.stapsdt"), "{error}");
    }
    let mut bytes = whole;
    bytes[size_at..][..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let path = files.write("sparse", &bytes);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 41)
        .unwrap();
    let error = scan(&path).unwrap_err();
    assert!(error.to_string().contains("claims"), "{error}");
}

/// An aarch64 note's addresses have no Thumb bit or tag to strip: they are taken as they stand.
#[test]
fn addresses_are_taken_as_written() {
    let files = Files::new();
    let spec = ElfSpec::new(true, false, AARCH64).probe("p", "n", [CODE.0 + 1, BASE, 0], "8@x0");
    let binary = read_binary(&files.write("elf", &spec.bytes())).unwrap();
    assert_eq!(binary.probes[0].sites[0].pc, CODE.0 + 1);
}

/// The notes of a section with another name are found, and those of a file without section headers, by its segments.
#[test]
fn notes_are_found_by_their_owner() {
    let files = Files::new();
    let spec = ElfSpec::x86_64()
        .probe("p", "first", [CODE.0, BASE, 0], "")
        .probe("p", "second", [CODE.0 + 1, BASE, DATA.0], "");
    let events = |name: &str, bytes: &[u8]| {
        let found = scan(&files.write(name, bytes)).unwrap();
        assert!(found.damaged.is_empty(), "{:?}", found.damaged);
        let probes = found.binary.probes.iter();
        let places = probes.map(|probe| (probe.event(), probe.sites.len(), probe.sites[0].offset));
        places.collect::<Vec<_>>()
    };
    let usual = events("usual", &spec.bytes());
    assert_eq!(usual.len(), 2);

    let mut renamed = spec.bytes();
    let name = b".note.stapsdt\0";
    let at = renamed.windows(name.len()).position(|bytes| bytes == name);
    renamed[at.unwrap() + 6..][..7].copy_from_slice(b"another");
    assert_eq!(events("renamed", &renamed), usual);

    // A third program header, for the notes; with sections, they are there twice.
    let mut with_segment = spec.bytes();
    let notes: Vec<u8> = [4_u64 << 32 | 4, NOTES, 0, 0, spec.notes_len(), 0, 4]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    with_segment[64 + 2 * 56..][..56].copy_from_slice(&notes);
    with_segment[56] = 3;
    assert_eq!(events("both", &with_segment), usual);
    with_segment[40..48].fill(0);
    with_segment[60..64].fill(0);
    assert_eq!(events("segment", &with_segment), usual);
    // The segment is there twice.
    let mut twice = with_segment.clone();
    twice[64 + 3 * 56..][..56].copy_from_slice(&notes);
    twice[56] = 4;
    assert_eq!(events("twice", &twice), usual);
    // It ends in the middle of a note, or after the file.
    for (len, found) in [(60_u64, 1), (1 << 40, 0), (1 << 20, 0)] {
        let mut cut = with_segment.clone();
        cut[64 + 2 * 56 + 32..][..8].copy_from_slice(&len.to_le_bytes());
        let scan = scan(&files.write("cut", &cut)).unwrap();
        assert_eq!(scan.binary.probes.len(), found, "{len}");
    }
}

/// A file with more sections than the header can say has their number, and that of the section of names, in the first section.
#[test]
fn many_sections_are_counted_in_the_first() {
    const MORE: usize = 70_000;
    let files = Files::new();
    let spec = ElfSpec::x86_64().probe("p", "n", [CODE.0, BASE, 0], "");
    let mut bytes = spec.bytes();
    let at = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let sections = bytes.split_off(at);
    let used = sections.len() / 64;
    let counted = |count: usize| {
        let mut bytes = bytes.clone();
        bytes.extend_from_slice(&sections);
        bytes.resize(bytes.len() + MORE * 64, 0);
        bytes[60..62].fill(0);
        bytes[62..64].fill(0xff);
        bytes[at + 32..at + 40].copy_from_slice(&(count as u64).to_le_bytes());
        bytes[at + 40..at + 44].copy_from_slice(&(used as u32 - 1).to_le_bytes());
        read_binary(&files.write("elf", &bytes))
    };
    let binary = counted(used + MORE).unwrap();
    assert_eq!(binary.probes.len(), 1);
    assert_eq!(binary.probes[0].sites[0].offset, Some(CODE.1));
    assert!(matches!(counted(1 << 40), Err(ElfError::Header(_))));
    assert!(matches!(counted(used + MORE + 1), Err(ElfError::Header(_))));
}
