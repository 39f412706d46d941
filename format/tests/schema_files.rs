//! Schema files of all languages: what is taken from them, what is said of the rest, and that nothing breaks them.

#![allow(clippy::unwrap_used)]

mod random;

use random::Random;
use usdtrec_format::schema::telemetry::SpanKind;
use usdtrec_format::schema::{ArgumentType, Hints, Language, Parsed, ProbeSchema, toml};

const PROVIDER_FILE: &str = include_str!("../../testdata/schemas/app.d");
const TAPSET: &str = include_str!("../../testdata/schemas/app.stp");
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
fn a_tapset() {
    let parsed = Language::Tapset.parse(TAPSET);
    assert_eq!(
        signatures(&parsed),
        [
            "sdt_app:request__start(id: ?, url: str, body: str(body_len), body_len: ?, arg5: ?, level: s32, …)",
            "sdt_app:done(tag: str(8), handle: ptr, …)",
            "sdt_part:gc__start(x: ?, …)",
        ]
    );
    let told = problems(&parsed).join("\n");
    for part in [
        "is_big is left out",
        "delta is left out",
        "provider of done is taken to be \"app\"",
        "no mark",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Marks without a provider, as tapsets of libraries and programs have them.
const NO_PROVIDER: &str = r#"
probe request_start = process("/usr/lib/x/libpart_one.so").mark("request_start")
{
    id = $arg1;
    list = names($arg2);
}
probe part.dotted = process("@libdir@/libpart-2.0.so.0.@CURRENT@").mark("dotted") { size = $arg1; }
probe process("/usr/lib/libpart-2.0.so.0").mark("bare") { sizes[pid(), $arg2] = user_string($arg1) }
probe process("server").mark("plain"), process("server").mark("star*"), process.mark("any") { }
probe kernel.function("nothing") { worked = twice($arg1) }
probe server.plain = process("server").mark("plain") { id = $arg1; url = user_string($arg2) }
probe server.either = %( arch == "x86_64" %? process("/usr/lib64/server").mark("first") ? %: process("server").mark("second") %) { id = $arg1 }
probe server.again = process("server").mark("plain") { number = $arg1; url = $arg2; fd = int_arg(3) }
"#;

#[test]
fn what_a_tapset_does_not_say_of_providers_is_told_or_taken_from_its_name() {
    let told = |hints: Hints<'_>| {
        let parsed = Language::Tapset.parse_with(NO_PROVIDER, &hints);
        (signatures(&parsed), problems(&parsed))
    };
    let (signatures, problems) = told(Hints::default());
    assert_eq!(
        signatures,
        [
            "sdt_part_one:request_start(id: ?, …)",
            "sdt_part:dotted(size: ?, …)",
            "sdt_server:plain(id: ?, url: str, fd: s32, …)",
            "sdt_server:first(id: ?, …)",
            "sdt_server:second(id: ?, …)",
        ]
    );
    let expected = [
        "2:23: note: provider of request_start is taken to be \"part_one\"",
        "5:10: note: list is left out",
        "7:21: note: provider of dotted is taken to be \"part\"",
        "8:7: note: bare is left out: nothing names its provider",
        "9:7: note: provider of plain is taken to be \"server\"",
        "9:40: note: left out: no mark",
        "9:73: note: any is left out: nothing names its provider",
        "10:7: note: left out: it has no mark",
        "11:22: note: provider of plain is taken to be \"server\"",
        "12:46: note: provider of first is taken to be \"server\"",
        "12:94: note: provider of second is taken to be \"server\"",
        "13:22: note: provider of plain is taken to be \"server\"",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{expected}: {problems:#?}");
    }
    let file = Some("whole.stp.in");
    let (signatures, problems) = told(Hints {
        file,
        ..Hints::default()
    });
    assert_eq!(
        signatures,
        [
            "sdt_whole:request_start(id: ?, …)",
            "sdt_part:dotted(size: ?, …)",
            "sdt_whole:bare(…)",
            "sdt_server:plain(id: ?, url: str, fd: s32, …)",
            "sdt_whole:any(…)",
            "sdt_server:first(id: ?, …)",
            "sdt_server:second(id: ?, …)",
        ]
    );
    assert!(problems[3].contains("provider of bare is taken to be \"whole\""));
    let provider = Some("given");
    let (signatures, problems) = told(Hints { provider, file });
    assert!(signatures.iter().all(|it| it.starts_with("sdt_given:")));
    assert!(!problems.join("").contains("taken to be"), "{problems:#?}");
}

#[test]
fn the_language_is_in_the_files_name() {
    for (name, language) in [
        ("probes.d", Some(Language::Dtrace)),
        ("probes_mysql.d.base", Some(Language::Dtrace)),
        ("glib.stp.in", Some(Language::Tapset)),
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
    let all = [PROVIDER_FILE, TAPSET, OURS];
    for (text, language) in
        all.into_iter()
            .zip([Language::Dtrace, Language::Tapset, Language::Toml])
    {
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
fn blocks_of_a_tapset_that_do_not_end() {
    let text = "probe process(\"x\").provider(\"p\").mark(\"a\") { a = $arg1 \n";
    let parsed = Language::Tapset.parse(text);
    assert_eq!(signatures(&parsed), ["sdt_p:a(a: ?, …)"]);
    let place = text.find('{').unwrap() + 1;
    assert_eq!(
        problems(&parsed),
        [format!(
            "1:{place}: error: the block that begins here does not end"
        )]
    );
    let text = "%{ if (x) { %}\nfunction f() %{ /* { */ } } %}\n\
                probe process(\"x\").provider(\"p\").mark(\"a\") { %{ { %} a = $arg1 }";
    let parsed = Language::Tapset.parse(text);
    assert_eq!(signatures(&parsed), ["sdt_p:a(a: ?, …)"]);
    assert_eq!(problems(&parsed), [""; 0]);
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
            "no words named \"e\"",
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
            "a.b is there twice",
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

#[test]
fn no_beginning_and_no_change_of_a_file_breaks_a_reader() {
    let mut random = Random::new(5);
    for (text, language) in [
        (PROVIDER_FILE, Language::Dtrace),
        (TAPSET, Language::Tapset),
        (OURS, Language::Toml),
    ] {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            check(language, &text[..end]);
        }
        let pieces: Vec<&str> = text
            .split_inclusive([' ', '\n', '(', ',', '"', '{'])
            .collect();
        for _ in 0..2000 {
            let mut changed: Vec<&str> = pieces.clone();
            for _ in 0..1 + random.below(4) {
                let (from, to) = (random.below(pieces.len()), random.below(changed.len()));
                match random.below(3) {
                    0 => changed[to] = pieces[from],
                    1 => changed.insert(to, pieces[from]),
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
        for language in [Language::Dtrace, Language::Tapset, Language::Toml] {
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
