//! The operand grammar against the corpus: argument strings of seven architectures.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test's helpers")]

mod corpus;

use corpus::{arch, lines, text};
use serde_json::Value;
use usdtrec_format::{Location, parse_operands};

/// The JSON forms of an argument string's operands.
fn parsed(line: &Value) -> Vec<Value> {
    let arch = arch(line);
    parse_operands(text(line, "args"), Some(arch))
        .iter()
        .map(|operand| serde_json::to_value(operand.json(arch)).unwrap())
        .collect()
}

#[test]
fn vectors_mean_what_they_say() {
    let vectors = lines("arg-vectors.jsonl");
    assert!(vectors.len() >= 76);
    for line in &vectors {
        let operands = parsed(line);
        match &line["expect"] {
            Value::Array(expected) => assert_eq!(&operands, expected, "{}", line["args"]),
            _ => assert!(
                operands.iter().any(|operand| operand["kind"] == "unparsed"),
                "{} gave {operands:?}",
                line["args"]
            ),
        }
    }
}

const REAL: [&str; 7] = [
    "notes-amd64.jsonl",
    "notes-i386.jsonl",
    "notes-arm64.jsonl",
    "notes-armhf.jsonl",
    "notes-ppc64el.jsonl",
    "notes-s390x.jsonl",
    "notes-riscv64.jsonl",
];

#[test]
fn every_real_operand_parses() {
    for line in REAL.into_iter().flat_map(lines) {
        for operand in parse_operands(text(&line, "args"), Some(arch(&line))) {
            assert!(
                !matches!(operand.location, Location::Unparsed { .. }),
                "{line}: {operand:?}"
            );
        }
    }
}

#[test]
fn every_operand_of_compilers_parses() {
    for line in lines("notes-synth.jsonl") {
        for operand in parse_operands(text(&line, "args"), Some(arch(&line))) {
            assert!(
                !matches!(operand.location, Location::Unparsed { .. }),
                "{line}: {operand:?}"
            );
        }
    }
}
