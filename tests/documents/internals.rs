//! docs/internals.md: the files that it names exist, and the bytes that it shows are those of a recording, as this code reads them.

use std::path::Path;

use usdtrec_format::trace::{BlockReader, Trace};
use usdtrec_format::{
    NoteLayout, ProbeDefinition, RawArgument, notes, parse_operands, split_operands,
};

use super::page::Page;
use crate::common::{Lab, test};

/// The recording that the page follows.
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/internals.data");

/// Without the spaces of columns.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines(page: &Page, language: &str) -> Vec<String> {
    let shown = page.block(language).lines().map(words).collect::<Vec<_>>();
    assert!(!shown.is_empty(), "{language}");
    shown
}

/// The bytes of a block, which are before a bar in each line.
fn bytes(page: &Page, language: &str) -> Vec<u8> {
    let shown = page.block(language).lines();
    let shown = shown.filter_map(|line| Some(line.split_once('|')?.0));
    let digits = shown.flat_map(str::split_whitespace);
    let byte = |text: &str| u8::from_str_radix(text, 16).expect("hexadecimal digits");
    digits.map(byte).collect()
}

/// Where the fields of a probe are in its raw part, in the words of the page.
fn layout(probe: &ProbeDefinition) -> Vec<String> {
    let raw = probe.plan.raw.as_ref().expect("a layout");
    let arguments = raw.arguments.iter().zip(&probe.arguments);
    let line = |(raw, argument): (&RawArgument, &usdtrec_format::schema::Argument)| {
        let RawArgument::Field(field) = raw else {
            panic!("{raw:?}");
        };
        let ending = if field.size == 1 { "" } else { "s" };
        let signed = if field.signed { ", signed" } else { "" };
        let (name, offset, size) = (&argument.name, field.offset, field.size);
        format!("{name} offset {offset}, {size} byte{ending}{signed}")
    };
    arguments.map(line).collect()
}

#[test]
fn the_story_of_a_probe_shows_what_the_code_reads() {
    let page = Page::read("docs/internals.md");
    assert!(page.lines() <= 250);
    let named = page.named_files();
    assert!(named.len() > 40, "{named:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in named {
        assert!(root.join(&name).exists(), "{}", name.display());
    }

    let source = include_str!("../../src/probes.rs");
    assert!(words(source).contains(&words(page.block("rust"))));

    let trace = Trace::open(Path::new(TRACE)).expect("a trace");
    let definitions = trace.info().definitions.as_ref().expect("definitions");
    let [probe] = &*definitions.probes else {
        panic!("{:?}", definitions.probes);
    };
    let site = &probe.sites[0].site;

    let section = bytes(&page, "hex note");
    let parsed = notes(
        &section,
        NoteLayout {
            class64: true,
            big_endian: false,
        },
    );
    let parsed: Result<Vec<_>, _> = parsed.collect();
    let [note] = &*parsed.expect("a note") else {
        panic!("one note was expected");
    };
    assert_eq!((&note.provider, &note.name), (&probe.provider, &probe.name));
    assert_eq!((note.pc, note.base), (site.pc, site.base));
    assert_eq!((note.semaphore, &note.args), (site.semaphore, &site.args));

    let arch = definitions.files[probe.file].arch.expect("an architecture");
    let operands = parse_operands(&note.args, Some(arch));
    let explained = split_operands(&note.args).zip(&operands);
    let explained = explained.map(|(text, operand)| format!("{text} {}", operand.explain(arch)));
    assert_eq!(lines(&page, "operands"), explained.collect::<Vec<_>>());
    assert_eq!(lines(&page, "layout"), layout(probe));

    let mut blocks = trace.blocks().iter();
    let first = blocks.find(|block| !block.metadata).expect("samples");
    let chunk = bytes(&page, "hex chunk");
    let file = std::fs::read(TRACE).expect("the file");
    assert!(file[first.offset as usize..].starts_with(&chunk));
    let mut reader = BlockReader::new();
    let records = reader.read(&trace, first).expect("records");
    let record = bytes(&page, "hex record");
    assert_eq!(record.len(), 80);
    assert!(records.starts_with(&record));

    let lab = Lab::new();
    for (format, language) in [("text", "text script"), ("json", "text json")] {
        let printed = lab.usdtrec(["script", "-i", TRACE, "--format", format]);
        let printed = printed.success().stdout;
        let first = printed.lines().next().expect("a line");
        assert_eq!(lines(&page, language), [words(first)]);
    }
}
