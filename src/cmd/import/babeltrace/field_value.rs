//! The value of a field.

use std::borrow::Cow;

use usdtrec_format::escape::escape_bytes;

use super::super::bad_line::BadLine;
use super::super::event::{ImportedValue, fits};
use super::cursor::Cursor;
use super::quoted;

/// Maximum depth of structures, arrays and options within a value.
const MAX_DEPTH: usize = 64;
/// Maximum length of the words of an enumeration's value, bytes.
const MAX_LABEL: usize = 256;

/// Takes a value. Structures, arrays and options keep the text that babeltrace2 prints.
pub(super) fn parse<'a>(cursor: &mut Cursor<'a>) -> Result<ImportedValue<'a>, BadLine> {
    match cursor.rest().first() {
        Some(b'"') => Ok(ImportedValue::Text(quoted::parse(cursor)?)),
        Some(b'(') => {
            let mut inner = *cursor;
            match enumeration(&mut inner) {
                Some(value) => {
                    *cursor = inner;
                    Ok(value)
                }
                None => Ok(text(nested(cursor)?)),
            }
        }
        Some(b'{' | b'[') => Ok(text(nested(cursor)?)),
        _ => {
            let rest = cursor.rest();
            match word(cursor) {
                b"" => Err(BadLine::bytes("the value of a field", rest)),
                // As version 2.1 prints booleans; texts have quotes.
                b"true" => Ok(ImportedValue::Bool(true)),
                b"false" => Ok(ImportedValue::Bool(false)),
                word => Ok(number(word).unwrap_or_else(|| text(word))),
            }
        }
    }
}

const fn text(bytes: &[u8]) -> ImportedValue<'_> {
    ImportedValue::Text(Cow::Borrowed(bytes))
}

/// Takes what is before the next comma or space.
fn word<'a>(cursor: &mut Cursor<'a>) -> &'a [u8] {
    let is_inner = |byte: &&u8| !matches!(byte, b',' | b' ' | b'"' | b'{' | b'}' | b'[' | b']');
    let len = cursor.rest().iter().take_while(is_inner).count();
    cursor.take(len)
}

/// A number as `print_integer` or `%g` prints it.
fn number(word: &[u8]) -> Option<ImportedValue<'static>> {
    let word = std::str::from_utf8(word).ok()?;
    integer(word).or_else(|| float(word))
}

/// In decimal, in hexadecimal (`0x1F`), binary (`0b0101`) or octal (`017`): the last three without a sign.
fn integer(word: &str) -> Option<ImportedValue<'static>> {
    const MOST_OF_FLOATS: i128 = 999_999;
    let radix = |digits: &str, radix: u32| {
        let is_digits = digits.chars().all(|digit| digit.is_digit(radix));
        is_digits.then(|| u64::from_str_radix(digits, radix).ok())?
    };
    if let Some(digits) = word.strip_prefix("0x") {
        return radix(digits, 16).map(ImportedValue::Hex);
    }
    let unsigned = if let Some(digits) = word.strip_prefix("0b") {
        Some(radix(digits, 2)?)
    } else if let Some(digits) = word.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        Some(radix(digits, 8)?)
    } else {
        None
    };
    if let Some(number) = unsigned {
        return Some(ImportedValue::Integer(number.into()));
    }
    let number: i128 = word.parse().ok()?;
    // -0 is a float.
    if !fits(&number) || number.to_string() != word {
        return None;
    }
    match i32::try_from(number) {
        Ok(short) if number.abs() <= MOST_OF_FLOATS => Some(ImportedValue::Whole(short)),
        _ => Some(ImportedValue::Integer(number)),
    }
}

/// As `%g` prints it.
fn float(word: &str) -> Option<ImportedValue<'static>> {
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let is_digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    let is_float = matches!(unsigned, "nan" | "inf")
        || unsigned.starts_with(|c: char| c.is_ascii_digit()) && unsigned.chars().all(is_digits);
    is_float.then(|| word.parse().ok().map(ImportedValue::Float))?
}

/// Takes `( "WORD", "WORD" : container = NUMBER )`; later versions print `|` between flags, and braces around several words of one.
fn enumeration(cursor: &mut Cursor<'_>) -> Option<ImportedValue<'static>> {
    const CONTAINER: &[u8] = b" : container = ";
    if !cursor.skip(b"( ") {
        return None;
    }
    let mut label = String::new();
    if !cursor.skip(b"<unknown>") {
        loop {
            cursor.skip(b"{ ");
            let word = quoted::parse(cursor).ok()?;
            // Words are printed without quotes.
            label.push_str(&escape_bytes(&word));
            cursor.skip(b" }");
            if label.len() > MAX_LABEL {
                return None;
            }
            if cursor.skip(b", ") {
                label.push_str(", ");
            } else if cursor.skip(b" | ") {
                label.push_str(" | ");
            } else {
                break;
            }
        }
    }
    if !cursor.skip(CONTAINER) {
        return None;
    }
    let value = number(word(cursor)).filter(|_| cursor.skip(b" )"))?;
    let number = value.integer()?;
    Some(if label.is_empty() {
        ImportedValue::Integer(number)
    } else {
        ImportedValue::Labelled { number, label }
    })
}

/// Takes a value in brackets, with all brackets and texts in it.
fn nested<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], BadLine> {
    let whole = cursor.rest();
    let mut open: Vec<u8> = Vec::new();
    loop {
        match cursor.rest().first() {
            Some(b'"') => {
                quoted::parse(cursor)?;
            }
            Some(first) => {
                match first {
                    b'{' => open.push(b'}'),
                    b'[' => open.push(b']'),
                    b'(' => open.push(b')'),
                    b'}' | b']' | b')' if open.pop() != Some(*first) => {
                        return Err(BadLine::bytes("brackets in pairs", whole));
                    }
                    _ => {}
                }
                cursor.take(1);
            }
            None => return Err(BadLine::bytes("the end of a value in brackets", whole)),
        }
        if open.len() > MAX_DEPTH {
            return Err(BadLine::TooDeep);
        }
        if open.is_empty() {
            let len = whole.len() - cursor.rest().len();
            return Ok(whole.get(..len).unwrap_or(whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value, and what follows it.
    fn value(text: &str) -> Result<(ImportedValue<'_>, &[u8]), BadLine> {
        let mut cursor = Cursor::new(text.as_bytes());
        parse(&mut cursor).map(|value| (value, cursor.rest()))
    }

    #[track_caller]
    fn check(text: &str, expected: ImportedValue<'_>) {
        for rest in [" }", ", b = 1 }"] {
            let line = format!("{text}{rest}");
            assert_eq!(
                value(&line).unwrap(),
                (ImportedValue::clone(&expected), rest.as_bytes())
            );
        }
    }

    #[test]
    fn integers() {
        use ImportedValue::{Hex, Integer, Whole};
        check("0", Whole(0));
        check("-999999", Whole(-999_999));
        check("1000000", Integer(1_000_000));
        check("-9223372036854775808", Integer(i64::MIN.into()));
        check("18446744073709551615", Integer(u64::MAX.into()));
        check("0xFFFFFFFFFFFFFFFF", Hex(u64::MAX));
        check("0x0", Hex(0));
        check("00", Integer(0));
        check("0755", Integer(0o755));
        check("01777777777777777777777", Integer(u64::MAX.into()));
        check("0b0101", Integer(5));
    }

    #[test]
    fn booleans() {
        check("true", ImportedValue::Bool(true));
        check("false", ImportedValue::Bool(false));
        check("\"true\"", text(b"true"));
    }

    #[test]
    fn floats() {
        let float = ImportedValue::Float;
        check("1.5", float(1.5));
        check("-1e+300", float(-1e300));
        check("1e+06", float(1e6));
        check("inf", float(f64::INFINITY));
        check("-inf", float(f64::NEG_INFINITY));
        for (text, negative) in [("nan", false), ("-nan", true), ("-0", true)] {
            let Ok((ImportedValue::Float(number), b"")) = value(text) else {
                panic!("{text}");
            };
            assert_eq!(number.is_sign_negative(), negative);
            assert!(number.is_nan() || number == 0.0);
        }
    }

    #[test]
    fn other_words_are_texts() {
        for word in [
            "True",
            "<none>",
            "18446744073709551616",
            "0x10000000000000000",
            "0x",
            "0xg",
            "+5",
            "09",
            "infinity",
            "1e",
            "0x-1",
        ] {
            let expected = match word {
                // Beyond 64 bits; babeltrace2 has no such integers.
                "18446744073709551616" => ImportedValue::Float(18_446_744_073_709_551_616.0),
                "09" => ImportedValue::Float(9.0),
                "0x" => text(b"0x"),
                word => text(word.as_bytes()),
            };
            check(word, expected);
        }
    }

    #[test]
    fn enumerations() {
        let labelled = |number, label: &str| ImportedValue::Labelled {
            number,
            label: label.to_owned(),
        };
        check(
            r#"( "RUN \"fast\"" : container = 1 )"#,
            labelled(1, "RUN \"fast\""),
        );
        check(
            r#"( "MANY", "OVERLAP" : container = 8 )"#,
            labelled(8, "MANY, OVERLAP"),
        );
        check(
            r#"( { "A", "B" } | "C" : container = 0x3 )"#,
            labelled(3, "A, B | C"),
        );
        check(r#"( "\e[2J" : container = 1 )"#, labelled(1, r"\x1b[2J"));
        check("( <unknown> : container = -3 )", ImportedValue::Integer(-3));
        check("( x )", text(b"( x )"));
        let long = format!(r#"( "{}" : container = 1 )"#, "x".repeat(300));
        check(&long, text(long.as_bytes()));
    }

    #[test]
    fn values_in_brackets_are_texts() {
        for value in [
            "[ ]",
            "{ }",
            "[ [0] = 1, [1] = -2 ]",
            r#"{ a = "}]\"", b = [ [0] = ( "x)" : container = 1 ) ] }"#,
            "{ { a = 1 } }",
        ] {
            check(value, text(value.as_bytes()));
        }
    }

    #[test]
    fn what_is_no_value() {
        let deep = "[".repeat(1 << 16);
        let wrong = [
            "", " ", ",", "}", "{", "[ }", "( \"a", "[ \"", "\"", "{ ] }", &deep,
        ];
        for wrong in wrong {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }
}
