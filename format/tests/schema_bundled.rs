//! The built-in schemas, held against the notes of real programs.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test's helpers")]

mod corpus;

use usdtrec_format::parse_operands;
use usdtrec_format::schema::{ArgumentType, Conflict, Schemas, bundled, toml};

use corpus::{arch, lines, text};

const ARCHES: [&str; 7] = [
    "amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x",
];

#[test]
fn every_file_reads_without_a_problem() {
    for text in bundled::texts() {
        let parsed = toml::parse(text);
        assert_eq!(parsed.problems, [], "{text}");
    }
    for probe in bundled::all() {
        let found = bundled::of_provider(&probe.provider);
        assert!(
            found.contains(probe),
            "{} is in a file of another provider",
            probe.signature()
        );
    }
}

#[test]
fn the_notes_of_real_programs_agree() {
    let providers = [
        "postgresql",
        "php",
        "ruby",
        "python",
        "libstdcxx",
        "libvirt",
        "hotspot",
        "hotspot_jni",
        "hs_private",
    ];
    let (mut known, mut typed) = (0, 0);
    let notes = ARCHES
        .iter()
        .flat_map(|arch| lines(&format!("notes-{arch}.jsonl")));
    for note in notes {
        let [provider, name, args] = ["provider", "name", "args"].map(|part| text(&note, part));
        if !providers.contains(&provider) {
            continue;
        }
        let arch = arch(&note);
        let operands = parse_operands(args, Some(arch));
        let choice = Schemas::built_in().choose(provider, name, operands.len());
        let schema = choice
            .schema
            .unwrap_or_else(|| panic!("{provider}:{name} {args:?}: {:?}", choice.misfits));
        known += 1;
        for (argument, operand) in schema.arguments.iter().zip(&operands) {
            typed += usize::from(argument.kind.is_some());
            let conflict = Conflict::find(argument, operand, arch);
            assert!(
                conflict.is_none(),
                "{arch:?} {} with {:?}: {}",
                schema.signature(),
                args,
                conflict.map_or_else(String::new, |conflict| conflict.to_string())
            );
            if argument.kind == Some(ArgumentType::Text(None)) {
                assert_eq!(
                    operand.bytes(arch),
                    arch.pointer_size(),
                    "{}",
                    schema.signature()
                );
            }
        }
    }
    assert!(
        known > 1000 && typed > 1000,
        "{known} probes, {typed} types"
    );
}
