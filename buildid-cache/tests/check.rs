//! What is checked before a probe is planted, each refusal on a file that deserves it.

use crate::common::{AARCH64, BASE, CODE, DATA, ElfSpec, Files, SEGMENT};
use std::path::Path;

use usdtrec_buildid_cache::elf::{CheckError, FileState, ObjectFile, read_binary};
use usdtrec_format::{Binary, BuildId, Site};

fn spec() -> ElfSpec {
    ElfSpec::x86_64().probe("p", "n", [CODE.0 + 0x10, BASE, DATA.0 + 2], "")
}

/// Opens a file and checks that it is what was indexed, then one of its sites.
fn check_site(path: &Path, indexed: Option<BuildId>, site: &Site) -> Result<(), CheckError> {
    let file = ObjectFile::open(path)?;
    file.check_file(indexed)?;
    file.check_site(site)
}

/// Opens the file of a binary and checks that it is what was indexed.
fn check_file(binary: &Binary) -> Result<(), CheckError> {
    ObjectFile::open(&binary.path)?.check_file(binary.build_id)
}

/// Indexes one file and checks the site against another that took its place.
fn check(indexed: &ElfSpec, present: &ElfSpec) -> Result<(), CheckError> {
    let files = Files::new();
    let path = files.write("elf", &indexed.bytes());
    let binary = read_binary(&path).unwrap();
    files.write("elf", &present.bytes());
    check_site(&path, binary.build_id, &binary.probes[0].sites[0])
}

#[test]
fn a_sound_site_passes() {
    check(&spec(), &spec()).unwrap();
    let mut without_id = spec();
    without_id.build_id = None;
    check(&without_id, &without_id).unwrap();
}

#[test]
fn another_build_is_refused() {
    let mut other = spec();
    other.build_id = Some(vec![9; 20]);
    let refusal = check(&spec(), &other).unwrap_err();
    let text = refusal.to_string();
    assert!(matches!(refusal, CheckError::Changed { .. }), "{text}");
    assert!(
        text.contains("0102030405060708090a0b0c0d0e0f1011121314"),
        "{text}"
    );
    assert!(text.contains(&"09".repeat(20)), "{text}");
    other.build_id = None;
    assert!(matches!(
        check(&spec(), &other),
        Err(CheckError::Changed { found: None, .. })
    ));
}

#[test]
fn what_is_no_nop_is_refused() {
    let mut other = spec();
    other.code[0x10] = 0xc3;
    let refusal = check(&spec(), &other).unwrap_err();
    let text = refusal.to_string();
    assert!(matches!(refusal, CheckError::NotNop { .. }), "{text}");
    assert!(
        text.contains("0x401010") && text.contains("c3 90"),
        "{text}"
    );
    // The nops are the machine's: 0x90 is none of aarch64's.
    let aarch64 = ElfSpec::new(true, false, AARCH64).probe("p", "n", [CODE.0, BASE, 0], "");
    assert!(matches!(
        check(&aarch64, &aarch64),
        Err(CheckError::NotNop { .. })
    ));
    let mut sound = aarch64;
    sound.code[..4].copy_from_slice(&[0x1f, 0x20, 0x03, 0xd5]);
    check(&sound, &sound).unwrap();
}

#[test]
fn code_must_be_executable_and_semaphores_writable() {
    let mut other = spec();
    other.code_flags = 4;
    assert!(
        matches!(check(&spec(), &other), Err(CheckError::NotExecutable(pc)) if pc == CODE.0 + 0x10)
    );
    let mut other = spec();
    other.data_flags = 4;
    let refusal = check(&spec(), &other).unwrap_err();
    assert!(
        matches!(refusal, CheckError::SemaphoreNotWritable(_)),
        "{refusal}"
    );
}

#[test]
fn places_outside_the_file_are_refused() {
    let at = |pc, semaphore| ElfSpec::x86_64().probe("p", "n", [pc, BASE, semaphore], "");
    let nowhere = at(0x10, 0);
    assert!(matches!(
        check(&nowhere, &nowhere),
        Err(CheckError::NoContent(0x10))
    ));
    let bss = at(CODE.0, DATA.0 + SEGMENT);
    let refusal = check(&bss, &bss).unwrap_err();
    assert!(
        matches!(refusal, CheckError::SemaphoreNotInFile(_)),
        "{refusal}"
    );
    let nowhere = at(CODE.0, 8);
    assert!(matches!(
        check(&nowhere, &nowhere),
        Err(CheckError::SemaphoreNotWritable(8))
    ));
}

/// An index that says another offset than the file has (perf's text edited by hand).
#[test]
fn a_moved_site_is_refused() {
    let files = Files::new();
    let path = files.write("elf", &spec().bytes());
    let Binary {
        build_id,
        mut probes,
        ..
    } = read_binary(&path).unwrap();
    let site: &mut Site = &mut probes[0].sites[0];
    site.offset = Some(0x20);
    assert!(matches!(
        check_site(&path, build_id, site),
        Err(CheckError::Moved { .. })
    ));
}

#[test]
fn files_that_cannot_carry_probes_are_refused() {
    for (kind, debug_file) in [(1, false), (3, true)] {
        let mut other = spec();
        other.kind = kind;
        other.debug_file = debug_file;
        assert!(matches!(
            check(&spec(), &other),
            Err(CheckError::Unreadable(_))
        ));
    }
    let files = Files::new();
    let mut binary = read_binary(&files.write("elf", &spec().bytes())).unwrap();
    files.write("elf", b"#!/bin/sh\n");
    assert!(matches!(
        check_file(&binary),
        Err(CheckError::Unreadable(_))
    ));
    binary.path = files.path("none");
    assert!(matches!(
        check_file(&binary),
        Err(CheckError::Unreadable(_))
    ));
}

#[test]
fn states_of_a_file() {
    let files = Files::new();
    let path = files.write("elf", &spec().bytes());
    let id = read_binary(&path).unwrap().build_id.unwrap();
    assert_eq!(FileState::compare(&path, id), FileState::Current);
    let mut other = spec();
    other.build_id = Some(vec![9; 20]);
    files.write("elf", &other.bytes());
    assert!(matches!(
        FileState::compare(&path, id),
        FileState::Changed(Some(_))
    ));
    files.write("elf", b"text");
    assert_eq!(FileState::compare(&path, id), FileState::Changed(None));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(FileState::compare(&path, id), FileState::Gone);
}
