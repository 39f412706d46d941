//! Expressions: what they mean, what is refused and where, and that nothing breaks the parser.

use usdtrec_format::expr::{Capture, Datum, EventSpec, Expr, Name};
use usdtrec_format::{Missing, StringAt, Value};
use usdtrec_testing::SplitMix64;

/// The value of an expression where `a` is 5, `b` -3, `big` 2^64-1, `f` 1.5, some are of 4 bytes, `s` "GET", `cut` begins with "/index", `none` missing; `guessed` and
/// `begun` are the numbers 4096 and 4097, which look like the addresses of the same strings.
fn value(text: &str) -> String {
    let expression = Expr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let text = Value::String(StringAt {
        address: 1,
        bytes: b"GET".to_vec(),
        cut: false,
        guessed: false,
        from_file: false,
    });
    let cut = Value::String(StringAt {
        address: 1,
        bytes: b"/index".to_vec(),
        cut: true,
        guessed: false,
        from_file: false,
    });
    let guess = |address, string: &Value| match string {
        Value::String(string) => Value::String(StringAt {
            address,
            guessed: true,
            ..string.clone()
        }),
        other => other.clone(),
    };
    let (guessed, begun) = (guess(4096, &text), guess(4097, &cut));
    let missing = Value::Missing(Missing::Truncated);
    let values = [
        ("a", Value::Unsigned(5)),
        ("b", Value::Signed(-3)),
        ("big", Value::Unsigned(u64::MAX)),
        ("f", Value::Float64(1.5)),
        ("single", Value::Float32(628_649_900.0)),
        ("tenth", Value::Float32(0.1)),
        ("nought", Value::Float32(0.0)),
        ("infinite", Value::Float32(f32::INFINITY)),
        ("s", text),
        ("cut", cut),
        ("guessed", guessed),
        ("begun", begun),
        ("none", missing),
    ];
    let names = |name: &Name| {
        let known = values.iter().find(|(known, _)| *known == name.text);
        known.map_or(Datum::Missing, |(_, value)| Datum::from_value(value))
    };
    match expression.evaluate(&names) {
        Datum::Integer(number) => number.to_string(),
        Datum::Float32(number) => format!("{number:?}"),
        Datum::Float(number) => format!("{number:?}"),
        Datum::String(text) => format!("{:?}", String::from_utf8_lossy(&text)),
        Datum::Cut(text) => format!("{:?}...", String::from_utf8_lossy(&text)),
        Datum::Guessed(string) => format!("{}?", string.address),
        Datum::Lowest(..) | Datum::Missing => "-".to_owned(),
    }
}

/// The digits that are shown of a number of 4 bytes find it: it is no other number with more digits.
#[test]
fn numbers_of_4_bytes_are_compared_as_they_are_shown() {
    for (text, expected) in [
        ("single == 628649900.0", "1"),
        ("628649900 == single", "1"),
        ("single != 628649900.0", "0"),
        ("single > 628649900", "0"),
        ("single >= 628649900", "1"),
        ("single == 628650000.0", "0"),
        ("tenth == 0.1", "1"),
        ("-tenth == -0.1", "1"),
        ("tenth < 0.1 || tenth > 0.1", "0"),
        ("(f64)tenth == 0.1", "0"),
        ("(f32)0.1 == tenth", "1"),
        ("f == 1.5", "1"),
        // Of these nothing would be left, or all.
        ("nought == 1.0 / 1.0e300", "0"),
        ("nought < 1.0 / 1.0e300", "1"),
        ("infinite == 1.0e300", "0"),
        ("infinite > 1.0e300", "1"),
        ("tenth == s", "-"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn operators_bind_as_in_c() {
    for (text, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 4 - 3", "3"),
        ("1 << 2 + 1", "8"),
        ("7 & 4 == 4", "1"),
        ("1 | 6 ^ 2 & 3", "5"),
        ("1 || 0 && 0", "1"),
        ("!0 + ~5", "-5"),
        ("- -a % 3", "2"),
        ("2 < 3 == 1", "1"),
        ("'a' + '\\n'", "107"),
        ("0x10 + 1_000", "1016"),
        ("0644 == 420", "1"),
        ("010k", "8192"),
        ("00 + 0e1 + 0.5", "0.5"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn numbers_are_compared_by_their_value_and_wrap_at_64_bits() {
    for (text, expected) in [
        ("b < a", "1"),
        ("b < big", "1"),
        ("big == 18446744073709551615", "1"),
        ("big + 1", "0"),
        ("b - big", "18446744073709551614"),
        ("a - 7", "-2"),
        ("big * big", "1"),
        ("1 << 63", "9223372036854775808"),
        ("1 << 64", "0"),
        ("b >> 1", "-2"),
        ("b << 1", "-6"),
        ("b << 62", "4611686018427387904"),
        ("b << 64", "0"),
        ("big << 1", "18446744073709551614"),
        ("(u8)b", "253"),
        ("(s8)200", "-56"),
        ("(u32)f", "1"),
        ("(f64)a / 2", "2.5"),
        ("f * 2 == 3", "1"),
        ("f > 1 && f < 2", "1"),
        ("big < 18446744073709551616.0", "1"),
        ("a / 0", "-"),
        ("b % 2", "-1"),
        ("1 << -1", "-"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// Of a string that is cut, what its captured bytes decide has a value.
#[test]
fn strings_that_are_cut() {
    for (text, expected) in [
        (r#"cut == "/other""#, "0"),
        (r#"cut == "/ind""#, "0"),
        (r#"cut == "/index""#, "-"),
        (r#"cut == "/index.html""#, "-"),
        (r#"cut != "/index""#, "-"),
        (r#"cut != "/other""#, "1"),
        (r#""/other" != cut"#, "1"),
        (r#"cut > "/ind""#, "1"),
        (r#"cut < "/j""#, "1"),
        (r#"cut < "/index.html""#, "-"),
        (r#"cut ~ "/in*""#, "1"),
        (r#"cut ~ "/index*""#, "1"),
        (r#"cut ~ "*.html""#, "-"),
        (r#"cut ~ "*.html*""#, "-"),
        (r#"cut ~ "/index""#, "-"),
        (r#"!(cut ~ "/other*")"#, "1"),
        ("cut == cut", "-"),
        ("cut < s", "1"),
        ("cut == 5", "-"),
        ("!cut", "0"),
        ("str(cut)", "\"/index\"..."),
        ("str(cut, 7)", "\"/index\"..."),
        ("str(cut, 6)", "\"/index\""),
        (r#"str(cut, 3) == "/in""#, "1"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// What only looks like a string is a number, as in the program that filters hits, unless it is compared with a string.
#[test]
fn strings_that_are_guessed() {
    for (text, expected) in [
        ("guessed != 0", "1"),
        ("4096 == guessed", "1"),
        ("guessed < 4095.5", "0"),
        ("guessed < begun", "1"),
        ("guessed == guessed", "1"),
        ("guessed + 1", "4097"),
        ("begun & 0xff", "1"),
        ("-guessed", "-4096"),
        ("!guessed", "0"),
        ("a && begun", "1"),
        ("(u8)begun", "1"),
        ("(ptr)guessed", "4096"),
        (r#"guessed == "GET""#, "1"),
        (r#""PUT" != guessed"#, "1"),
        (r#"guessed ~ "G*""#, "1"),
        ("guessed == s && s == guessed", "1"),
        ("guessed == str(guessed)", "1"),
        ("str(guessed, 2)", "\"GE\""),
        (r#"begun == "/other""#, "0"),
        (r#"begun == "/index""#, "-"),
        (r#"begun ~ "/in*""#, "1"),
        ("cut < guessed", "1"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn strings_and_what_is_missing() {
    for (text, expected) in [
        (r#"s == "GET""#, "1"),
        (r#"s != "PUT" && a > 4"#, "1"),
        (r#"s ~ "G*""#, "1"),
        (r#"s ~ "[a-z]*""#, "0"),
        (r#"s < "H""#, "1"),
        ("s == 5", "-"),
        ("a ~ \"5\"", "-"),
        ("str(s) == s", "1"),
        ("str(s, 2)", "\"GE\""),
        ("!s", "0"),
        ("*a", "-"),
        ("*(s32*)(a + 4)", "-"),
        ("bytes(a, 4)", "-"),
        ("none == 0", "-"),
        ("!none", "-"),
        ("none || a", "1"),
        ("none || 0", "-"),
        ("0 && none", "0"),
        ("none && 0", "0"),
        ("none && 1", "-"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn shapes_for_capture() {
    for (text, shape) in [
        ("*(arg1+8)", "*((arg1 + 8))"),
        ("**arg1", "*(*(arg1))"),
        ("*(s32*)(arg1+4)", "*(s32*)((arg1 + 4))"),
        ("*(ptr*)arg1 + 1", "(*(arg1) + 1)"),
        ("str(*(arg1 + 8), 16)", "str(*((arg1 + 8)), 16)"),
        ("bytes(arg3, arg4)", "bytes(arg3, arg4)"),
        ("(u16)arg1 & 0xf", "((u16)(arg1) & 15)"),
        ("(arg1)", "arg1"),
        ("*(arg1)", "*(arg1)"),
        (r#"a == "\x00\"\n""#, r#"(a == "\x00\"\x0a")"#),
    ] {
        let expression = Expr::parse(text).unwrap();
        assert_eq!(expression.to_string(), shape, "{text}");
        let again = Expr::parse(shape).unwrap();
        assert_eq!(again.to_string(), shape);
        let memory = text.contains(['*', '"']) || text.contains("bytes(");
        assert_eq!(
            expression.reads_memory(),
            memory && !text.contains('"'),
            "{text}"
        );
    }
}

#[test]
fn what_is_refused_is_said_with_its_place() {
    for (text, message) in [
        (
            "",
            "at byte 1: expected a number, a string, a name or (, found the end",
        ),
        ("a b", "at byte 3: expected an operator or the end, found b"),
        (
            "a = 5",
            "at byte 3: expected an operator or the end, found =",
        ),
        ("(a", "at byte 3: expected ), found the end"),
        (
            "a ==",
            "at byte 5: expected a number, a string, a name or (, found the end",
        ),
        (
            "\"x",
            "at byte 1: expected a number, a string, a name or (, found a string that does not end",
        ),
        (
            "18446744073709551616",
            "at byte 1: 18446744073709551616 is no number up to 2^64-1, nor a size as 4k, 64M or 1G",
        ),
        (
            "'ab'",
            "at byte 1: expected one byte between quotes, found 2",
        ),
        ("s ~ 5", "at byte 3: expected a glob in quotes after ~"),
        ("s ~ \"[\"", "at byte 3: expected a glob in quotes after ~"),
        (
            "bytes(a)",
            "at byte 8: expected , and the number of bytes, found )",
        ),
        (
            "ö",
            "at byte 1: expected a number, a string, a name or (, found a character that has no meaning here",
        ),
        ("\"\\q\"", "at byte 2: unknown escape \\q"),
    ] {
        let error = Expr::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    for (text, message) in [
        ("(".repeat(1000), "more than 64 brackets"),
        ("!".repeat(1000), "more than 64 brackets"),
        ("1+".repeat(100_000), "more than 2000 words"),
    ] {
        let error = Expr::parse(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    // A long chain is deep on its left side.
    let chain = format!("1{}", "+1".repeat(999));
    assert_eq!(value(&chain), "1000");
}

#[test]
fn numbers_with_exponents_and_sizes() {
    for (text, expected) in [
        ("1e6 == 1000000", "1"),
        ("1e-7 == 0.0000001", "1"),
        ("2.5E+3 == 2500", "1"),
        ("1e-7 < 1e-6", "1"),
        ("4k == 4096", "1"),
        ("64M == 67108864", "1"),
        ("1G", "1073741824"),
        ("0x1e-7", "23"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    for (text, message) in [
        ("100ms", "100ms is a time, and arguments are plain numbers"),
        ("90ms", "the duration of a span is called span"),
        ("1e999", "1e999 is no number"),
        ("1e", "1e is no number"),
        ("089", "089 begins with 0 and is octal"),
        ("17179869184G", "17179869184G is no number"),
    ] {
        let error = Expr::parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn events_with_lists() {
    let request = EventSpec::parse(
        r#"sdt_node:http__*(url=str(*arg1), method=str(*(arg1+8)), port=arg4, fd, x="a)(@")@/opt/a(b)/node"#,
    );
    let request = request.unwrap();
    assert_eq!(request.pattern.text(), "sdt_node:http__*@/opt/a(b)/node");
    let captures = request.captures.unwrap();
    let names: Vec<&str> = captures.iter().map(Capture::name).collect();
    assert_eq!(names, ["url", "method", "port", "fd", "x"]);
    assert_eq!(captures[1].value.to_string(), "str(*((arg1 + 8)))");
    assert_eq!(EventSpec::parse("p:n@/a(b)").unwrap().captures, None);
    assert_eq!(EventSpec::parse("p:n").unwrap().captures, None);
    assert_eq!(EventSpec::parse("p:n()").unwrap().captures, Some(vec![]));
    for (text, message) in [
        ("p:n(a", "has no )"),
        ("p:n(a)b", "expected @PATH or the end"),
        ("p:n(*a)", "at byte 5: a name for it is missing: NAME=*(a)"),
        ("p:n(a, b=a, b=c)", "at byte 13: two arguments are named b"),
        (
            "p:n(a b)",
            "at byte 7: expected an operator or the end, found b",
        ),
        ("p:(a)", "name is missing"),
    ] {
        let error = EventSpec::parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn no_change_of_an_expression_breaks_the_parser() {
    let text =
        r#"p:n(url=str(*(arg1+8), 16), b=*(s32*)(a << 2) ~ "x*", (u8)c && !d || 'c' <= 1.5e3)@/x"#;
    let mut random = SplitMix64(11);
    for end in 0..text.len() {
        drop(EventSpec::parse(&text[..end]));
    }
    for _ in 0..20_000 {
        let mut bytes = text.as_bytes().to_vec();
        random.damage(&mut bytes, b"()*&|=!~<>+-,'\"\\@s8 1.");
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(EventSpec {
            captures: Some(captures),
            ..
        }) = EventSpec::parse(&text)
        {
            for capture in captures {
                let shape = capture.value.to_string();
                let again = Expr::parse(&shape).map(|again| again.to_string());
                assert_eq!(again.as_deref(), Ok(&*shape), "{text}");
                let _ = capture.value.evaluate(&|_| Datum::Integer(-1));
            }
        }
    }
}
