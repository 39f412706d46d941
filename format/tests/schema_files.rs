//! Schema files of all languages: what is taken from them, what is said of the rest, and that nothing breaks them.

use usdtrec_format::schema::telemetry::SpanKind;
use usdtrec_format::schema::{
    ArgumentType, Language, LockAction, LockUse, Parsed, ProbeSchema, toml,
};
use usdtrec_testing::SplitMix64;

const PROVIDER_FILE: &str = include_str!("../../testdata/schemas/app.d");
const OURS: &str = r#"
provider = "app"
[enum.kind]
1 = "one"
-2 = "minus two"
[flags.open]
0x10 = "create"
[attributes]
app.kind = "{kind}"
app.name = "shop"
[[probe]]
name = "gc-start"
span_kind = "producer"
attributes = { "app.text" = "{text}: {bare}", app.inline = "{inline}" }
description = "a \"collection\""
arguments = [
    "kind: s32 enum(kind)",
    "mode: flags(open)",
    "pause: u64 ns; since the last one",
    "bare",
    "_: ptr",
    "text: str(len)",
    "len: u32 bytes",
    { name = "inline", type = "u8", enum = { 0 = "no" }, unit = "odd unit", description = "x; y" },
]
more = true
[[probe]]
provider = "other"
name = "none"
attributes = { app.name = "" }
"#;

fn signatures(parsed: &Parsed) -> Vec<String> {
    parsed.probes.iter().map(ProbeSchema::signature).collect()
}

fn problems(parsed: &Parsed) -> Vec<String> {
    parsed.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_provider_file() {
    let parsed = Language::Dtrace.parse(PROVIDER_FILE);
    assert_eq!(
        signatures(&parsed),
        [
            "sdt_app:start()",
            "sdt_app:shutdown()",
            "sdt_app:request__start(conn: ptr, url: str, name: str, arg4: s32)",
            "sdt_app:request__done(c: ptr, why: enum, arg3: enum)",
            "sdt_app:numbers(a: u8, b: s16, c: u64, d: s64, e: f32, f: f64, arg7: u64)",
            "sdt_app:own(arg1: u32, arg2: u32, arg3: bool, arg4: s32, t: s64 ns, arg6: str, cb: ptr, arg8: ptr)",
            "sdt_app:unknown(m: ?, x: ?, bytes: ptr)",
            "sdt_app:store(m: ?, key: str(keylen), keylen: s32, old_value: str(old_value_length), old_value_length: u64, \
             p: str, plen: f32)",
            "sdt_second:only(p: ptr, c: char, s: s8)",
        ]
    );
    let why = parsed.probes[3].arguments[1].labels.as_ref().unwrap();
    assert_eq!(why.number("RESET"), Some(6));
    let told = problems(&parsed);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told[0].starts_with("31:16: note: unknown type \"mystery_t\""),
        "{told:?}"
    );
    assert!(
        told[2] == "32:2: note: store: the length of key is taken to be in keylen",
        "{told:?}"
    );
}

#[test]
fn the_language_is_in_the_files_name() {
    for (name, language) in [
        ("probes.d", Some(Language::Dtrace)),
        ("probes_mysql.d.base", Some(Language::Dtrace)),
        ("probes.d.in", Some(Language::Dtrace)),
        ("app.stp", None),
        ("a.b.toml", Some(Language::Toml)),
        ("probes.d.orig", None),
        ("d", None),
        (".in", None),
    ] {
        assert_eq!(Language::from_file_name(name), language, "{name}");
    }
}

#[test]
fn our_own_files_read_back() {
    let parsed = toml::parse(OURS);
    assert_eq!(problems(&parsed), [""; 0]);
    assert_eq!(
        signatures(&parsed),
        [
            "sdt_app:gc__start(kind: enum, mode: flags, pause: u64 ns, bare: ?, arg5: ptr, text: str(len), \
             len: u32 bytes, inline: enum odd unit, …)",
            "sdt_other:none()",
        ]
    );
    let first = &parsed.probes[0].telemetry;
    let attributes: Vec<_> = first.attributes.iter().collect();
    let attributes: Vec<_> = attributes.iter().map(|(k, v)| (&***k, &***v)).collect();
    assert_eq!(
        attributes,
        [
            ("app.inline", "{inline}"),
            ("app.kind", "{kind}"),
            ("app.name", "shop"),
            ("app.text", "{text}: {bare}"),
        ]
    );
    assert_eq!(first.kind, Some(SpanKind::Producer));
    // Neither its own arguments, nor what it does not want.
    assert!(parsed.probes[1].telemetry.is_empty());
    for (text, language) in [(PROVIDER_FILE, Language::Dtrace), (OURS, Language::Toml)] {
        let probes = language.parse(text).probes;
        let again = toml::parse(&toml::write(&probes));
        assert_eq!(problems(&again), [""; 0]);
        assert_eq!(again.probes, probes);
    }
}

/// What the documentation shows is what is read.
#[test]
fn the_documented_example() {
    let document = include_str!("../SCHEMAS.md");
    let (_, example) = document.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let parsed = toml::parse(example);
    assert_eq!(problems(&parsed), [""; 0]);
    assert_eq!(
        signatures(&parsed),
        [
            "sdt_node:gc__start(type: enum, pause: u64 ns, kind: ptr mangled = str(*(kind+8)), \
             isolate: ?, arg5: ptr, mode: flags bits, …)",
            "sdt_app:request(url: str(url_len), url_len: u32 bytes, key: bytes(16))",
        ]
    );
    let (_, example) = document.split_once("provider = \"shopd\"").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let parsed = toml::parse(&format!("provider = \"shopd\"{example}"));
    assert_eq!(problems(&parsed), [""; 0]);
    let types = [
        "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f32", "f64", "bool", "char", "ptr",
        "str",
    ];
    for name in types {
        assert!(name.parse::<ArgumentType>().is_ok(), "{name}");
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_costs_no_more_than_its_probe() {
    let head = "provider = \"p\"\n[[probe]]\nname = \"good\"\n[[probe]]\nname = \"bad\"\n";
    for (line, place, words) in [
        (
            "arguments = [\"a: u24\"]",
            "6:14: error",
            "unknown type \"u24\"",
        ),
        (
            "arguments = [\"a\", \"a\"]",
            "4:1: error",
            "two arguments are named \"a\"",
        ),
        (
            "arguments = [\"a: str(n)\"]",
            "4:1: error",
            "length is \"n\"",
        ),
        (
            "arguments = [\"a: u8 enum(e)\"]",
            "6:14: error",
            "no table of words is named \"e\"",
        ),
        (
            "arguments = [{ type = \"u8\" }]",
            "6:14: error",
            "an argument with a name",
        ),
        ("arguments = [7]", "6:14: error", "found integer"),
        ("arguments = [\"1a\"]", "6:14: error", "letters, digits"),
        ("more = 1", "6:8: error", "true or false"),
        (
            "span_kind = \"Server\"",
            "6:13: error",
            "expected internal, server, client",
        ),
        (
            "attributes = { \"Db.x\" = \"1\" }",
            "6:16: error",
            "\"Db.x\" is not the name of an attribute",
        ),
        (
            "attributes = { thread.id = \"1\" }",
            "6:23: error",
            "thread.id: spans have an attribute of that name",
        ),
        (
            "attributes = { db.query.text = \"{sql}\" }",
            "4:1: error",
            "db.query.text: its value has \"sql\", which is not an argument",
        ),
        (
            "attributes = { db.query.text = \"{sql\" }",
            "4:1: error",
            "arguments in braces",
        ),
        (
            "attributes = { db.query.text = 7 }",
            "6:32: error",
            "expected text in quotes, found integer",
        ),
        (
            "attributes = { a.b = \"1\", \"a.b\" = \"2\" }",
            "6:",
            "duplicate attribute a.b",
        ),
    ] {
        let parsed = toml::parse(&format!("{head}{line}\n"));
        let told = problems(&parsed);
        assert_eq!(signatures(&parsed), ["sdt_p:good()"], "{line}");
        assert!(
            told[0].starts_with(place) && told[0].contains(words),
            "{line}: {told:?}"
        );
    }
    let odd = toml::parse("provider = \"p\"\ncolour = 1\n[[probe]]\nname = \"x\"\n");
    assert_eq!(
        problems(&odd)[0],
        "2:1: note: unknown key \"colour\": expected provider, needs, enum, flags, attributes or [[probe]]"
    );
    assert_eq!(odd.probes.len(), 1);
    let unused =
        toml::parse("provider = \"p\"\nattributes = { a.b = \"{no}\" }\n[[probe]]\nname = \"x\"\n");
    assert_eq!(
        problems(&unused),
        ["2:18: error: a.b: no probe of the file has all arguments of \"{no}\""]
    );
    let broken = toml::parse("provider = \"p\n[[probe]]\n");
    assert!(
        problems(&broken)[0].starts_with("1:"),
        "{:?}",
        problems(&broken)
    );
}

/// Numbers that are not known are none of an argument: it has its number in place of a word.
#[test]
fn enumerators_have_the_numbers_that_c_gives_them() {
    let numbers = |enumerators: &str| {
        let text = format!("enum e {{ {enumerators} }};\nprovider p {{ probe x(enum e a); }};");
        let parsed = Language::Dtrace.parse(&text);
        let labels = parsed.probes[0].arguments[0].labels.clone()?;
        let words = labels.words().iter();
        Some(
            words
                .map(|(number, word)| (*number, word.clone()))
                .collect::<Vec<_>>(),
        )
    };
    for (enumerators, expected) in [
        (
            "READ = 1 << 1, WRITE = 1 << 2, NEXT",
            &[(2, "READ"), (4, "WRITE"), (5, "NEXT")][..],
        ),
        (
            "A = 010, B = A | 1, C = -(B + 1), D = (1u << 4),",
            &[(-10, "C"), (8, "A"), (9, "B"), (16, "D")],
        ),
        ("A = 'x', B = ~0", &[(-1, "B"), (120, "A")]),
    ] {
        let expected = expected.iter();
        let expected = expected.map(|(number, word)| (*number, (*word).to_owned()));
        assert_eq!(
            numbers(enumerators),
            Some(expected.collect()),
            "{enumerators}"
        );
    }
    for enumerators in [
        "A = sizeof(int), B",
        "A, B = MACRO",
        "A = 1.5",
        "A = 1 << 63",
        "A = 08",
        "A,\n#define B 1\nC",
        "A __attribute__((unused)), B",
        "A =",
        "",
    ] {
        assert_eq!(numbers(enumerators), None, "{enumerators}");
    }
}

#[test]
fn no_beginning_and_no_change_of_a_file_breaks_a_reader() {
    let mut random = SplitMix64(5);
    for (text, language) in [(PROVIDER_FILE, Language::Dtrace), (OURS, Language::Toml)] {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            check(language, &text[..end]);
        }
        let pieces: Vec<&str> = text
            .split_inclusive([' ', '\n', '(', ',', '"', '{'])
            .collect();
        for _ in 0..2000 {
            let mut changed: Vec<&str> = pieces.clone();
            for _ in 0..1 + random.below(4) {
                let piece = random.choose(&pieces);
                let to = random.below(changed.len() as u64) as usize;
                match random.below(3) {
                    0 => changed[to] = piece,
                    1 => changed.insert(to, piece),
                    _ => {
                        changed.remove(to);
                    }
                }
            }
            check(language, &changed.concat());
        }
        for _ in 0..2000 {
            let mut bytes = text.as_bytes().to_vec();
            random.damage(&mut bytes, b"(){};,.\"'=#$%@*\\[]\n");
            check(language, &String::from_utf8_lossy(&bytes));
        }
    }
}

fn check(language: Language, text: &str) {
    let parsed = language.parse(text);
    let lines = text.lines().count() + 1;
    assert!(parsed.problems.iter().all(|problem| problem.line <= lines));
    // Whatever was taken can be written and read again.
    let again = toml::parse(&toml::write(&parsed.probes));
    assert_eq!(again.probes, parsed.probes, "{:?}\n{text}", again.problems);
}

#[test]
fn time_grows_with_the_text_and_no_faster() {
    let deep = |open: &str, close: &str| open.repeat(20_000) + &close.repeat(20_000);
    let texts = [
        deep("provider a { probe b(", ""),
        deep("provider a { probe b(int (", ") )"),
        deep("/*", "*/"),
        deep("probe x = ", "{ }"),
        deep("probe a = process(\"b\").mark(\"c\") { d = $arg1 { ", "}"),
        deep("x = $arg9 ( ", ")"),
        deep("a = [", "]"),
        deep("[[probe]]\n", ""),
        deep("[[probe]]\nname = 1\n", ""),
        deep("#define a a\ntypedef a b;\n", ""),
        deep("enum e { A, ", "};"),
        format!(
            "enum e {{ {} }}; provider p {{ probe x({}); }};",
            "A1,".repeat(20_000),
            "enum e,".repeat(20_000)
        ),
        "\"".repeat(300_000),
        "a\u{301}".repeat(100_000),
    ];
    for text in texts {
        for language in [Language::Dtrace, Language::Toml] {
            let start = cpu_seconds();
            let parsed = language.parse(&text);
            let took = cpu_seconds() - start;
            let beginning: String = text.chars().take(40).collect();
            assert!(took < 10.0, "{language:?} {beginning}: {took} s");
            assert!(parsed.problems.len() <= 1000);
        }
    }
}

/// CPU time of this thread, which does not depend on what else the machine does.
fn cpu_seconds() -> f64 {
    // Time on the CPU, ns; time waiting; slices of time (Documentation/scheduler/sched-stats.rst).
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns: f64 = stat.split(' ').next().unwrap().parse().unwrap();
    ns / 1e9
}

#[test]
fn calls_and_returns_of_functions() {
    let text = |lines: &str| {
        format!(
            "[[probe]]\nprovider = \"p\"\nname = \"n\"\narguments = [\"f: str\", \"c: str\", \"file: str\"]\n{lines}"
        )
    };
    for (lines, enters, file) in [
        ("calls = \"{c}.{f}\"\nsource = \"file\"", true, Some("file")),
        ("returns = \"{c}.{f}\"", false, None),
    ] {
        let parsed = toml::parse(&text(lines));
        assert_eq!(problems(&parsed), [""; 0]);
        let call = parsed.probes[0].call.as_ref().unwrap();
        assert_eq!((call.enters, call.file.as_deref()), (enters, file));
        assert_eq!(call.function, "{c}.{f}");
        // It reads back.
        assert_eq!(
            toml::parse(&toml::write(&parsed.probes)).probes,
            parsed.probes
        );
    }
    for (lines, problem) in [
        (
            "calls = \"{c.f\"",
            "expected the name of a function with arguments in braces",
        ),
        (
            "calls = \"f\"",
            "expected the name of a function with arguments in braces",
        ),
        ("calls = \"{g}\"", "has \"g\", which is not an argument"),
        (
            "calls = \"{f}\"\nsource = \"g\"",
            "has \"g\", which is not an argument",
        ),
        (
            "calls = \"{f}\"\nreturns = \"{f}\"",
            "expected either calls or returns",
        ),
        ("source = \"file\"", "expected calls or returns with source"),
    ] {
        let parsed = toml::parse(&text(lines));
        assert!(parsed.probes.is_empty(), "{lines}");
        let said = problems(&parsed).join("\n");
        assert!(said.contains(problem), "{lines}: {said}");
    }
}

#[test]
fn what_is_done_with_locks() {
    let text = |lines: &str| {
        format!("[[probe]]\nprovider = \"p\"\nname = \"n\"\narguments = [\"lock: ptr\"]\n{lines}")
    };
    for (key, action) in LockAction::ALL {
        for (more, [shared, group, contended]) in [
            ("", [false; 3]),
            ("shared = true", [true, false, false]),
            ("group = true", [false, true, false]),
            ("contended = true", [false, false, true]),
        ] {
            let parsed = toml::parse(&text(&format!("{key} = \"lock\"\n{more}")));
            assert_eq!(problems(&parsed), [""; 0]);
            let expected = LockUse {
                action,
                lock: "lock".to_owned(),
                shared,
                group,
                contended,
            };
            assert_eq!(parsed.probes[0].lock.as_ref(), Some(&expected));
            // It reads back, and from a trace's definitions, too.
            assert_eq!(
                toml::parse(&toml::write(&parsed.probes)).probes,
                parsed.probes
            );
            let stored = serde_json::to_string(&expected).unwrap();
            assert_eq!(
                serde_json::from_str::<LockUse>(&stored).unwrap(),
                expected,
                "{stored}"
            );
        }
    }
    for (lines, problem) in [
        (
            "waits = \"mutex\"",
            "expected the argument that says which lock, found \"mutex\"",
        ),
        (
            "waits = \"lock\"\nreleases = \"lock\"",
            "expected one of waits, waited, acquires and releases",
        ),
        (
            "shared = true",
            "expected waits, waited, acquires or releases with shared",
        ),
        ("waits = \"lock\"\ngroup = 1", "expected true or false"),
    ] {
        let parsed = toml::parse(&text(lines));
        assert!(parsed.probes.is_empty(), "{lines}");
        let said = problems(&parsed).join("\n");
        assert!(said.contains(problem), "{lines}: {said}");
    }
}
