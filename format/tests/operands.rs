//! The operand grammar against the corpus: argument strings of seven architectures.

use std::collections::BTreeMap;

use crate::corpus::{arch, lines, text};
use serde_json::Value;
use usdtrec_format::{Arch, Constant, Location, Operand, parse_operands, split_operands};

/// The JSON forms of an argument string's operands.
fn parsed(args: &str, arch: Arch) -> Vec<Value> {
    parse_operands(args, Some(arch))
        .iter()
        .map(|operand| serde_json::to_value(operand.json(arch)).unwrap())
        .collect()
}

/// The one operand of an argument string.
fn one(args: &str, arch: Arch) -> Operand {
    let mut operands = parse_operands(args, Some(arch));
    assert_eq!(operands.len(), 1, "{args:?}: {operands:?}");
    operands.remove(0)
}

#[test]
fn vectors_mean_what_they_say() {
    let mut vectors = lines("arg-vectors.jsonl");
    vectors.extend(lines("more-arg-vectors.jsonl"));
    assert!(vectors.len() >= 133);
    for line in &vectors {
        let operands = parsed(text(line, "args"), arch(line));
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

#[test]
fn a_negative_zero_keeps_its_sign() {
    let Location::Constant(Constant::Float(zero)) = one("8f@#-0.0", Arch::Arm).location else {
        panic!("no float");
    };
    assert_eq!(zero.to_bits(), (-0.0_f64).to_bits());
}

/// How many operands of each kind the real notes have, counted apart from this project: sizes split with one regular
/// expression, the rest classed by another.
const REAL: [(&str, &[(&str, usize)]); 7] = [
    (
        "notes-amd64.jsonl",
        &[
            ("const", 63),
            ("reg", 1467),
            ("reg_deref", 312),
            ("symbol_deref", 6),
        ],
    ),
    (
        "notes-arm64.jsonl",
        &[("const", 59), ("reg", 1425), ("reg_deref", 202)],
    ),
    (
        "notes-ppc64el.jsonl",
        &[("const", 11), ("reg", 245), ("reg_deref", 49)],
    ),
    (
        "notes-s390x.jsonl",
        &[("const", 11), ("reg", 231), ("reg_deref", 63)],
    ),
    (
        "notes-i386.jsonl",
        &[("const", 64), ("reg", 1018), ("reg_deref", 1459)],
    ),
    (
        "notes-armhf.jsonl",
        &[("const", 37), ("reg", 1192), ("reg_deref", 210)],
    ),
    (
        "notes-riscv64.jsonl",
        &[("const", 27), ("reg", 1237), ("reg_deref", 34)],
    ),
];

#[test]
fn every_real_operand_parses_as_its_kind() {
    for (file, expected) in REAL {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines(file) {
            for operand in parsed(text(&line, "args"), arch(&line)) {
                assert_ne!(operand["kind"], "unparsed", "{line}");
                *kinds.entry(text(&operand, "kind").to_owned()).or_default() += 1;
            }
        }
        let expected: BTreeMap<String, usize> = expected
            .iter()
            .map(|(kind, count)| ((*kind).to_owned(), *count))
            .collect();
        assert_eq!(kinds, expected, "{file}");
    }
}

/// Writes an operand of the real notes back as the compiler wrote it.
fn written(operand: &Value, arch: Arch) -> String {
    let sign = if operand["signed"] == true { "-" } else { "" };
    let size = operand["size"].as_u64().unwrap();
    let value = |member: &str| operand[member].as_i64().unwrap();
    let full = |member: &str| text(operand, member).to_owned();
    // Compilers write a constant with the sign of its upper bit, whatever the argument is.
    let constant = || {
        let value = &operand["value"];
        let bits = value
            .as_u64()
            .unwrap_or_else(|| value.as_i64().unwrap() as u64);
        let unused = 64 - 8 * size as u32;
        ((bits << unused) as i64) >> unused
    };
    let body = match (text(operand, "kind"), arch) {
        ("const", Arch::X86_64 | Arch::I386) => format!("${}", constant()),
        ("const", Arch::Arm) => format!("#{}", constant()),
        ("const", Arch::Ppc64le) => format!("i{}", constant()),
        ("const", _) => constant().to_string(),
        ("reg", Arch::X86_64) => format!("%{}", part_of(&full("reg"), size)),
        ("reg", Arch::I386 | Arch::S390x) => format!("%{}", full("reg")),
        ("reg", Arch::Ppc64le) => full("reg")[1..].to_owned(),
        ("reg", _) => full("reg"),
        ("reg_deref", Arch::Aarch64 | Arch::Arm) => {
            let hash = if arch == Arch::Arm { "#" } else { "" };
            match value("offset") {
                0 => format!("[{}]", full("reg")),
                offset => format!("[{}, {hash}{offset}]", full("reg")),
            }
        }
        ("reg_deref", Arch::Ppc64le) => format!("{}({})", value("offset"), &full("reg")[1..]),
        ("reg_deref", Arch::Riscv64) => format!("{}({})", value("offset"), full("reg")),
        ("reg_deref", Arch::S390x) => format!("{}(%{})", value("offset"), full("reg")),
        ("reg_deref", _) => match value("offset") {
            0 => format!("(%{})", full("reg")),
            offset => format!("{offset}(%{})", full("reg")),
        },
        ("symbol_deref", Arch::X86_64) => match value("offset") {
            0 => format!("{}(%rip)", full("symbol")),
            offset => format!("{offset}+{}(%rip)", full("symbol")),
        },
        other => panic!("{other:?}"),
    };
    format!("{sign}{size}@{body}")
}

/// The name of a register's low bytes as x86-64 compilers write it.
fn part_of(full: &str, size: u64) -> String {
    let numbered = full[1..].parse::<u8>().is_ok();
    match (size, numbered) {
        (8, _) => full.to_owned(),
        (4, true) => format!("{full}d"),
        (2, true) => format!("{full}w"),
        (1, true) => format!("{full}b"),
        (4, false) => format!("e{}", &full[1..]),
        (2, false) => full[1..].to_owned(),
        (1, false) if full.ends_with('x') => format!("{}l", &full[1..2]),
        _ => format!("{}l", &full[1..]),
    }
}

#[test]
fn every_real_argument_string_can_be_written_back() {
    for (file, _) in REAL {
        for line in lines(file) {
            let arch = arch(&line);
            let operands = parsed(text(&line, "args"), arch);
            let back: Vec<String> = operands
                .iter()
                .map(|operand| written(operand, arch))
                .collect();
            // gcc also writes `0(%r13)`.
            let args = text(&line, "args").replace("@0(%", "@(%");
            assert_eq!(back.join(" ").replace("@0(%", "@(%"), args, "{file}");
        }
    }
}

#[test]
fn every_operand_of_compilers_parses() {
    let lines = lines("notes-synth.jsonl");
    assert!(lines.len() >= 314);
    for line in lines {
        for operand in parsed(text(&line, "args"), arch(&line)) {
            assert_ne!(operand["kind"], "unparsed", "{line}: {operand}");
        }
    }
}

#[test]
fn every_argument_string_alone_gives_what_it_gives_among_others() {
    for line in lines("arg-vectors.jsonl") {
        let (args, arch) = (text(&line, "args"), arch(&line));
        let alone = parse_operands(args, Some(arch));
        let among = parse_operands(&format!("  8@nonsense( {args}\t 4@@ "), Some(arch));
        assert_eq!(among.len(), alone.len() + 2, "{args}");
        assert_eq!(among[1..=alone.len()], alone, "{args}");
    }
}

#[test]
fn operands_end_where_the_next_begins() {
    let long = format!("8@{}(%rax, %rbx)", "s".repeat(400));
    let cases: &[(&str, &[&str])] = &[
        ("8@ 4@%rax", &["8@", "4@%rax"]),
        ("8@rax @foo", &["8@rax", "@foo"]),
        (
            "-4 @ -20 ( %rbp ) 8 @ %rax",
            &["-4 @ -20 ( %rbp )", "8 @ %rax"],
        ),
        ("8@$0 (%rax)", &["8@$0", "(%rax)"]),
        ("8@-20 (%rax) (%rbx)", &["8@-20 (%rax)", "(%rbx)"]),
        (
            "4@(%rax 8@(%rbx, %rcx) 4@%ecx",
            &["4@(%rax", "8@(%rbx, %rcx)", "4@%ecx"],
        ),
        (
            "4@[sp, 12] 4@(%rax %rbx",
            &["4@[sp, 12]", "4@(%rax", "%rbx"],
        ),
        ("4@) 4@%eax", &["4@)", "4@%eax"]),
        (&long, &[&long]),
    ];
    for (args, expected) in cases {
        let found: Vec<&str> = split_operands(args).collect();
        assert_eq!(&found, expected, "{args}");
    }
}

#[test]
fn an_unknown_machine_keeps_the_texts() {
    let operands = parse_operands("-4@[sp, 132] 8@x0", None);
    let texts: Vec<&str> = operands
        .iter()
        .map(|operand| match &operand.location {
            Location::Unparsed { text, .. } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["-4@[sp, 132]", "8@x0"]);
    assert_eq!(operands[0].size, Some(4));
}

#[test]
fn no_arguments_are_written_in_two_ways() {
    for args in ["", " ", ":", ":8@%rax"] {
        assert_eq!(parse_operands(args, Some(Arch::X86_64)), []);
    }
}
