//! Argument strings that the operand grammar refuses, also damaged ones.

use crate::corpus::{lines, text};
use serde_json::json;
use usdtrec_format::{Arch, Location, Operand, parse_operands};
use usdtrec_testing::SplitMix64;

/// The one operand of an argument string.
fn one(args: &str, arch: Arch) -> Operand {
    let mut operands = parse_operands(args, Some(arch));
    assert_eq!(operands.len(), 1, "{args:?}: {operands:?}");
    operands.remove(0)
}

/// Operands that are refused, with a word of the reason.
const REFUSED: &[(Arch, &str, &str)] = &[
    (Arch::X86_64, "8@", "nothing"),
    (Arch::X86_64, "8@$", "constant"),
    (Arch::X86_64, "@%rax", "symbol"),
    (Arch::X86_64, "-@%rax", "size"),
    (Arch::X86_64, "0@%rax", "0 bytes"),
    (Arch::X86_64, "3@%rax", "3 bytes"),
    (Arch::X86_64, "300@%rax", "size"),
    (Arch::X86_64, "1f@%rax", "1 bytes"),
    (Arch::X86_64, "8@rax", "prefix of a register"),
    (Arch::X86_64, "8@1234", "base"),
    (Arch::X86_64, "8@%rfoo", "no register"),
    (Arch::X86_64, "8@%", "no register"),
    (Arch::X86_64, "8@(%rfoo)", "no register"),
    (Arch::X86_64, "8@()", "no register"),
    (Arch::X86_64, "8@(%rax,)", "no register"),
    (Arch::X86_64, "8@(%rax,%rbx,4,5)", "more than"),
    (Arch::X86_64, "8@a-b(%rax)", "symbols"),
    (Arch::X86_64, "8@a+b(%rax)", "symbols"),
    (Arch::X86_64, "8@4 4(%rax)", "base"),
    (Arch::X86_64, "8@9223372036854775808(%rax)", "64 bits"),
    (Arch::X86_64, "8@$99999999999999999999", "64 bits"),
    (Arch::X86_64, "8@$1/$0", "no value"),
    (Arch::X86_64, "8@$1<<$64", "no value"),
    (Arch::X86_64, "8@($1", "without its )"),
    (Arch::X86_64, "8@$1+", "constant"),
    (Arch::X86_64, "8@%fs:", "segment"),
    (Arch::X86_64, "8@%ds:", "segment"),
    (Arch::X86_64, "8@%ds:%rax", "%rax"),
    (Arch::X86_64, "8@sym@(%rip)", "after the @"),
    (Arch::Aarch64, "8@%x0", "%x0"),
    (Arch::Aarch64, "8@[x0", "without its ]"),
    (Arch::Aarch64, "8@[]", "no register"),
    (Arch::Aarch64, "8@[x0, x1, ror 3]", "extends or shifts"),
    (Arch::Aarch64, "8@[x0, x1, lsl 9]", "not shifted"),
    (Arch::Aarch64, "8@sym", "does not say"),
    (Arch::Arm, "4@r99", "no register"),
    (Arch::Arm, "4@r16", "no register"),
    (Arch::Arm, "4@r07", "no register"),
    (Arch::Arm, "4@r", "no register"),
    (Arch::Arm, "8@d32", "no register"),
    (Arch::Arm, "8@#x", "4 bytes"),
    (Arch::Arm, "8@gbla", "4 bytes"),
    (Arch::I386, "8@$x", "4 bytes"),
    (Arch::Aarch64, "8@x99", "does not say"),
    (Arch::Riscv64, "8@x32", ""),
    (Arch::Ppc64le, "8@42", "no register"),
    (Arch::S390x, "8@r3", "prefix of a register"),
    (Arch::Riscv64, "8@%lo(sym)", "no register"),
];

#[test]
fn what_is_refused_keeps_its_text_and_says_why() {
    for (arch, args, word) in REFUSED {
        let first = parse_operands(args, Some(*arch)).remove(0);
        let Location::Unparsed { text, error } = &first.location else {
            panic!("{args}: {first:?}");
        };
        let reason = error.to_string();
        assert!(args.starts_with(text.as_str()), "{args}: {text}");
        assert!(reason.contains(word), "{args}: {reason}");
        let form = serde_json::to_value(first.json(*arch)).unwrap();
        assert_eq!(
            form,
            json!({"kind": "unparsed", "text": text, "reason": reason})
        );
    }
}

#[test]
fn what_is_refused_says_where() {
    for (arch, args, rest) in [
        (Arch::X86_64, "4@what?", "?"),
        (Arch::X86_64, "4f4@%eax", "4f4@%eax"),
        (Arch::X86_64, "-3@%eax", "-3@%eax"),
        (Arch::X86_64, "8@", ""),
        (Arch::X86_64, "8@-8(%rbp,%rax,3)", "3)"),
        (Arch::X86_64, "8@-8(%rbp,%what)", "%what)"),
        (
            Arch::X86_64,
            "8@99999999999999999999(%rbp)",
            "99999999999999999999(%rbp)",
        ),
        (Arch::X86_64, "8@$1+($2", "($2"),
        (Arch::X86_64, "8@$1+$2/$0", "/$0"),
        (Arch::Aarch64, "8@[x0, x1, ror 3]", "ror 3]"),
        (Arch::Aarch64, "8@[x0, x1, lsl 9]", "9]"),
    ] {
        let operand = one(args, arch);
        let Location::Unparsed { text, error } = &operand.location else {
            panic!("{args}: {operand:?}");
        };
        assert_eq!(&text[error.position..], rest, "{error}");
    }
}

#[test]
fn an_operand_without_a_body_does_not_take_the_next_one() {
    for (arch, args, count) in [
        (Arch::X86_64, "8@ 4x@152 4@%eax", 3),
        (Arch::Arm, "1@ +4@[r1, #138] 4@r2", 3),
        (Arch::X86_64, "8@ 4 @%eax", 2),
        (Arch::X86_64, "-4@ -8x@(%rbp) 4@%eax", 3),
        (Arch::Aarch64, "8@ +8@[sp, 4] 4@w1", 3),
        // Blanks of hand-written ones.
        (Arch::X86_64, "-4 @ -20 ( %rbp ) 8@ var@GOTPCREL(%rip)", 2),
    ] {
        let operands = parse_operands(args, Some(arch));
        assert_eq!(operands.len(), count, "{args}: {operands:?}");
    }
}

#[test]
fn nesting_has_an_end() {
    for nest in ["(", "!", "-", "($1+"] {
        let args = format!("8@{}", nest.repeat(100_000));
        assert!(matches!(
            one(&args, Arch::X86_64).location,
            Location::Unparsed { .. }
        ));
    }
}

#[test]
fn brackets_that_never_close_cost_little() {
    let args = "( ".repeat(20_000);
    assert_eq!(parse_operands(&args, Some(Arch::X86_64)).len(), 20_000);
}

#[test]
fn damaged_argument_strings_never_panic() {
    let alphabet = b"()[]%$#@:,+-*/!~ 0123456789abcdefilorstwxz._\xc3\xa9";
    let mut random = SplitMix64(0x0b5e55ed);
    let mut strings: Vec<String> = lines("arg-vectors.jsonl")
        .iter()
        .map(|line| text(line, "args").to_owned())
        .collect();
    strings.extend(
        lines("notes-synth.jsonl")
            .iter()
            .map(|line| text(line, "args").to_owned()),
    );
    for args in strings {
        for _ in 0..40 {
            let mut bytes = args.clone().into_bytes();
            random.damage(&mut bytes, alphabet);
            let damaged = String::from_utf8_lossy(&bytes);
            for arch in Arch::ALL {
                look_at_all(&damaged, arch);
            }
        }
        for end in (0..args.len()).filter(|end| args.is_char_boundary(*end)) {
            look_at_all(&args[..end], Arch::X86_64);
        }
    }
}

/// Parses and uses everything that an operand offers.
fn look_at_all(args: &str, arch: Arch) {
    for operand in parse_operands(args, Some(arch)) {
        assert!(serde_json::to_string(&operand.json(arch)).is_ok());
        assert!(!operand.explain(arch).is_empty());
        assert!(operand.bytes(arch) > 0);
        assert!(
            operand
                .registers()
                .all(|register| arch.register_bytes(register) > 0)
        );
    }
}
