//! Texts in quotes.

use std::borrow::Cow;

use super::super::bad_line::BadLine;
use super::cursor::Cursor;

/// Takes a text in quotes, and resolves its escapes (`print_escape_string`).
pub(super) fn parse<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, [u8]>, BadLine> {
    let rest = cursor.rest();
    if !cursor.skip(b"\"") {
        return Err(BadLine::bytes("a quote", rest));
    }
    let mut text = Cow::Borrowed(plain(cursor));
    while !cursor.skip(b"\"") {
        if !cursor.skip(b"\\") {
            return Err(BadLine::bytes("a quote at the end of a text", rest));
        }
        let escape = cursor.rest();
        let byte = escaped(cursor)
            .ok_or_else(|| BadLine::bytes("an escape of babeltrace2 after \\", escape))?;
        let text = text.to_mut();
        text.push(byte);
        text.extend(plain(cursor));
    }
    Ok(text)
}

/// Takes what is before the next quote or backslash.
fn plain<'a>(cursor: &mut Cursor<'a>) -> &'a [u8] {
    let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\');
    let len = cursor.rest().iter().take_while(is_plain).count();
    cursor.take(len)
}

/// Takes what follows a backslash.
fn escaped(cursor: &mut Cursor<'_>) -> Option<u8> {
    Some(match *cursor.take(1).first()? {
        byte @ (b'\\' | b'\'' | b'"' | b'?') => byte,
        b'0' => 0,
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'e' => 27,
        b'x' => {
            let digits = cursor.take(2);
            let is_hex = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
            let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
            // Bytes from 0x80 on are printed as they are.
            let byte = u8::from_str_radix(digits, 16).ok()?;
            return byte.is_ascii_control().then_some(byte);
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let text = |text: &str| parse(&mut Cursor::new(text.as_bytes())).map(Cow::into_owned);
        assert_eq!(text(r#""""#).unwrap(), b"");
        assert_eq!(text(r#""a b" }"#).unwrap(), b"a b");
        let all = r#""\\\'\"\?\a\b\e\f\n\r\t\v\x01\x7f1\0""#;
        let bytes = b"\\'\"?\x07\x08\x1b\x0c\n\r\t\x0b\x01\x7f1\0";
        assert_eq!(text(all).unwrap(), bytes);
        assert_eq!(text("\"gr\u{fc}n\"").unwrap(), "gr\u{fc}n".as_bytes());
        for wrong in [
            "",
            "a",
            "\"",
            "\"a",
            "\"\\",
            "\"\\\"",
            "\"\\q\"",
            "\"\\x\"",
            "\"\\x1\"",
            "\"\\xff\"",
            "\"\\x+1\"",
            "\"\\x41\"",
        ] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }
}
