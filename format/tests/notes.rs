//! Note sections: real ones field by field, made ones for every layout, and damaged ones.

use crate::corpus::{arch, lines, text};
use usdtrec_format::{Arch, Note, NoteError, NoteLayout, notes};
use usdtrec_testing::SplitMix64;

const LAYOUTS: [NoteLayout; 4] = [
    layout(true, false),
    layout(true, true),
    layout(false, false),
    layout(false, true),
];

const fn layout(class64: bool, big_endian: bool) -> NoteLayout {
    NoteLayout {
        class64,
        big_endian,
    }
}

/// A whole section, as a linker lays it out.
fn encode(notes: &[Note], layout: NoteLayout) -> Vec<u8> {
    notes
        .iter()
        .flat_map(|note| encode_note(note, layout))
        .collect()
}

fn encode_note(note: &Note, layout: NoteLayout) -> Vec<u8> {
    let mut descriptor = Vec::new();
    for address in [note.pc, note.base, note.semaphore] {
        if layout.class64 {
            descriptor.extend(word64(address, layout.big_endian));
        } else {
            descriptor.extend(word32(u32::try_from(address).unwrap(), layout.big_endian));
        }
    }
    for string in [&note.provider, &note.name, &note.args] {
        descriptor.extend(string.bytes());
        descriptor.push(0);
    }
    raw_note(b"stapsdt\0", 3, &descriptor, layout.big_endian)
}

/// A note of any owner, padded.
fn raw_note(owner: &[u8], kind: u32, descriptor: &[u8], big_endian: bool) -> Vec<u8> {
    let len = |bytes: &[u8]| word32(u32::try_from(bytes.len()).unwrap(), big_endian);
    let mut bytes = [len(owner), len(descriptor), word32(kind, big_endian)].concat();
    for part in [owner, descriptor] {
        bytes.extend(part);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn word32(word: u32, big_endian: bool) -> [u8; 4] {
    if big_endian {
        word.to_be_bytes()
    } else {
        word.to_le_bytes()
    }
}

fn word64(word: u64, big_endian: bool) -> [u8; 8] {
    if big_endian {
        word.to_be_bytes()
    } else {
        word.to_le_bytes()
    }
}

fn note(name: &str) -> Note {
    Note {
        provider: "app".to_owned(),
        name: name.to_owned(),
        pc: 0x1110,
        base: 0x2024,
        semaphore: 0x4030,
        args: "-4@%ebx 8@%rbp".to_owned(),
    }
}

/// Decodes a section that must have no error.
fn decoded(section: &[u8], layout: NoteLayout) -> Vec<Note> {
    notes(section, layout).collect::<Result<_, _>>().unwrap()
}

/// A line of the corpus' note files as a note.
fn expected(line: &serde_json::Value) -> Note {
    let address = |member| {
        let digits = text(line, member).strip_prefix("0x").unwrap();
        u64::from_str_radix(digits, 16).unwrap()
    };
    Note {
        provider: text(line, "provider").to_owned(),
        name: text(line, "name").to_owned(),
        pc: address("pc"),
        base: address("base"),
        semaphore: address("semaphore"),
        args: text(line, "args").to_owned(),
    }
}

/// The file with the notes of an architecture, which has Debian's name for it.
fn note_file(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "notes-amd64.jsonl",
        Arch::I386 => "notes-i386.jsonl",
        Arch::Aarch64 => "notes-arm64.jsonl",
        Arch::Arm => "notes-armhf.jsonl",
        Arch::Ppc64le => "notes-ppc64el.jsonl",
        Arch::S390x => "notes-s390x.jsonl",
        Arch::Riscv64 => "notes-riscv64.jsonl",
    }
}

/// The raw sections with their layouts.
fn sections() -> Vec<(serde_json::Value, Vec<u8>, NoteLayout)> {
    let sections = lines("note-sections.jsonl").into_iter().map(|line| {
        let hex = text(&line, "section_hex");
        let bytes = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let layout = layout(line["class"] == 64, line["endian"] == "big");
        (line, bytes, layout)
    });
    sections.collect()
}

#[test]
fn real_sections_hold_the_notes_of_their_files() {
    let sections = sections();
    assert_eq!(sections.len(), 15);
    let mut compared = 0;
    for (line, bytes, layout) in &sections {
        let found = decoded(bytes, *layout);
        assert_eq!(line["notes"], found.len(), "{}", line["path"]);
        let base = u64::from_str_radix(&text(line, "stapsdt_base_addr")[2..], 16).unwrap();
        assert!(found.iter().all(|note| note.base == base));
        let same_file: Vec<Note> = lines(note_file(arch(line)))
            .iter()
            .filter(|note| note["path"] == line["path"] && note["package"] == line["package"])
            .map(expected)
            .collect();
        assert_eq!(found, same_file, "{} {}", line["arch"], line["path"]);
        compared += found.len();
    }
    assert_eq!(compared, 151);
}

#[test]
fn real_sections_encode_to_the_same_bytes() {
    for (line, bytes, layout) in sections() {
        assert_eq!(
            encode(&decoded(&bytes, layout), layout),
            bytes,
            "{}",
            line["path"]
        );
    }
}

#[test]
fn every_real_note_survives_every_layout() {
    for arch in Arch::ALL {
        let notes: Vec<Note> = lines(note_file(arch)).iter().map(expected).collect();
        assert!(notes.len() > 100, "{arch:?}");
        for layout in LAYOUTS {
            assert_eq!(
                decoded(&encode(&notes, layout), layout),
                notes,
                "{arch:?} {layout:?}"
            );
        }
    }
}

#[test]
fn other_owners_and_types_are_passed_over() {
    for layout in LAYOUTS {
        let big = layout.big_endian;
        let descriptor = [0x5a; 20];
        let mut section = raw_note(b"GNU\0", 3, &descriptor, big);
        section.extend(encode_note(&note("first"), layout));
        section.extend(raw_note(b"stapsdt\0", 2, &descriptor, big));
        section.extend(raw_note(b"stapsdt", 3, &descriptor, big));
        section.extend(raw_note(b"", 3, b"", big));
        section.extend(encode_note(&note("second"), layout));
        section.extend([0; 8]);
        assert_eq!(decoded(&section, layout), [note("first"), note("second")]);
    }
}

#[test]
fn a_bad_note_costs_only_itself() {
    let addresses = [0_u8; 24];
    let cases: [(&[u8], &str, &str); 6] = [
        (b"", "three addresses", "23 bytes"),
        (b"app", "a provider", "without its NUL"),
        (b"app\0name", "a probe name", "without its NUL"),
        (b"app\0name\0", "an argument string", "the descriptor's end"),
        (
            b"app\0name\0-4@%ebx",
            "an argument string",
            "without its NUL",
        ),
        (b"app\0\0-4@%ebx\0", "a provider and a name", "an empty one"),
    ];
    for (strings, expected, found) in cases {
        let layout = layout(true, false);
        let first = encode_note(&note("first"), layout);
        let descriptor = match strings {
            b"" => addresses[..23].to_vec(),
            strings => [&addresses, strings].concat(),
        };
        let bad = raw_note(b"stapsdt\0", 3, &descriptor, false);
        let section = [first.clone(), bad, encode_note(&note("second"), layout)].concat();
        let all: Vec<Result<Note, NoteError>> = notes(&section, layout).collect();
        let [Ok(before), Err(error), Ok(after)] = all.as_slice() else {
            panic!("{strings:?}: {all:?}");
        };
        assert_eq!((before, after), (&note("first"), &note("second")));
        assert_eq!(error.offset, first.len());
        assert!(error.expected.starts_with(expected), "{error}");
        assert!(error.found.contains(found), "{error}");
    }
}

#[test]
fn sizes_that_lie_end_the_walk_with_their_place() {
    for layout in LAYOUTS {
        let first = encode_note(&note("first"), layout);
        for (at, size) in [
            (0, 9000_u32),
            (4, 9000),
            (0, u32::MAX),
            (4, u32::MAX),
            (4, u32::MAX - 2),
        ] {
            let mut second = encode_note(&note("second"), layout);
            second[at..at + 4].copy_from_slice(&word32(size, layout.big_endian));
            let section = [first.clone(), second].concat();
            let all: Vec<Result<Note, NoteError>> = notes(&section, layout).collect();
            assert_eq!(all.len(), 2);
            assert_eq!(all[0], Ok(note("first")));
            assert_eq!(all[1].as_ref().unwrap_err().offset, first.len());
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_kept_as_replacements() {
    let descriptor = [[0; 24].as_slice(), b"a\xffp\0n\0\0"].concat();
    let section = raw_note(b"stapsdt\0", 3, &descriptor, false);
    assert_eq!(
        decoded(&section, layout(true, false))[0].provider,
        "a\u{fffd}p"
    );
}

#[test]
fn the_last_note_may_lack_its_padding() {
    let layout = layout(true, false);
    let mut section = encode(&[note("even"), note("odd_")], layout);
    while section.last() == Some(&0) {
        section.pop();
    }
    section.push(0);
    assert_eq!(decoded(&section, layout).len(), 2);
}

#[test]
fn every_prefix_gives_the_whole_notes_in_it() {
    for (_, bytes, layout) in sections() {
        let whole = decoded(&bytes, layout);
        for len in 0..bytes.len() {
            let good: Vec<Note> = notes(&bytes[..len], layout)
                .filter_map(Result::ok)
                .collect();
            assert_eq!(good, whole[..good.len()]);
            assert!(notes(&bytes[..len], layout).filter(Result::is_err).count() <= 1);
        }
    }
}

#[test]
fn damage_never_panics_nor_loops() {
    let mut random = SplitMix64(0x5d7);
    for (_, bytes, layout) in sections() {
        for _ in 0..2000 {
            let mut bytes = bytes.clone();
            random.damage(&mut bytes, &[0, 1, 3, 4, 8, 0x7f, 0xff]);
            // Each step takes at least a header's 12 bytes, but the last.
            assert!(notes(&bytes, layout).count() <= bytes.len() / 12 + 1);
            assert!(notes(&bytes, flipped(layout)).count() <= bytes.len() / 12 + 1);
        }
    }
}

const fn flipped(layout: NoteLayout) -> NoteLayout {
    NoteLayout {
        class64: !layout.class64,
        big_endian: !layout.big_endian,
    }
}
