//! Escaping of text from traced programs and files, for terminals and for readers of lines.
//!
//! Two forms: [`escape`] for names, paths and messages, which changes only characters that cannot be
//! printed, and [`quote`] for string values, which adds quotes.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::Path;

/// Escapes characters that cannot be printed as `\n`, `\t`, `\r`, `\xNN` (a byte, or a control character below
/// 0x80) or `\u{N}`. Printable characters of any script, backslashes and quotes are unchanged. Escaped are control
/// characters, including 0x80 to 0x9f, bidirectional overrides and invisible characters.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| push_char(&mut out, c));
    Cow::Owned(out)
}

/// As [`escape`], for bytes: each byte that is not UTF-8 becomes `\xNN`.
#[must_use]
pub fn escape_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return escape(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for_each_char(bytes, |piece| match piece {
        Ok(c) => push_char(&mut out, c),
        Err(byte) => push_byte(&mut out, byte),
    });
    Cow::Owned(out)
}

/// A path in a message, escaped as by [`escape_bytes`]. Use it instead of [`Path::display`] in all output.
#[derive(Clone, Copy, Debug)]
pub struct ShownPath<'a>(&'a Path);

/// Displays a path in a message.
#[must_use]
pub fn shown(path: &Path) -> ShownPath<'_> {
    ShownPath(path)
}

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_bytes(self.0.as_os_str().as_encoded_bytes()))
    }
}

/// Appends a string value in double quotes, escaped as by [`escape_bytes`], and with `\"` and `\\`.
pub fn quote(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for_each_char(bytes, |piece| match piece {
        Ok(c @ ('"' | '\\')) => {
            out.push('\\');
            out.push(c);
        }
        Ok(c) => push_char(out, c),
        Err(byte) => push_byte(out, byte),
    });
    out.push('"');
}

/// Escapes characters that JSON allows in strings and a terminal must not receive: control characters from 0x7f on,
/// bidirectional overrides and invisible characters become `\u` and four digits. The JSON value is unchanged.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a character, from 0x7f on, cannot be printed.
pub(crate) fn is_hidden(c: char) -> bool {
    c >= '\x7f' && c.escape_debug().len() > 1
}

/// Calls `take` with each character of UTF-8 bytes, or with each byte that is not part of one.
fn for_each_char(bytes: &[u8], mut take: impl FnMut(Result<char, u8>)) {
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| take(Ok(c)));
        chunk.invalid().iter().for_each(|&byte| take(Err(byte)));
    }
}

fn push_char(out: &mut String, c: char) {
    match c {
        ' '..='~' => out.push(c),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\0'..='\x7f' => push_byte(out, c as u8),
        // The standard library knows what is printable; its escape of the rest is `\u{N}`.
        _ => out.extend(c.escape_debug()),
    }
}

fn push_byte(out: &mut String, byte: u8) {
    let _ = write!(out, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed_and_stays() {
        let text = r#"a-b'"c\d query__start"#;
        assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
        assert_eq!(escape("größe 数"), "größe 数");
    }

    #[test]
    fn what_moves_a_cursor_or_hides_is_written_out() {
        assert_eq!(escape("a\x1b[2Jb\nc\td\r"), r"a\x1b[2Jb\nc\td\r");
        assert_eq!(
            escape("\u{9b}31m\u{202e}\u{200b}\0"),
            r"\u{9b}31m\u{202e}\u{200b}\x00"
        );
    }

    #[test]
    fn json_says_the_same_and_can_be_shown() {
        let plain = "{\"größe\":\"数\"}\n";
        assert!(matches!(escape_json(plain), Cow::Borrowed(same) if same == plain));
        let text = "a\u{9b}31m\u{202e}\x7f\u{e0001}é";
        let json = serde_json::to_string(text).unwrap();
        let escaped = escape_json(&json);
        assert_eq!(escaped, r#""a\u009b31m\u202e\u007f\udb40\udc01é""#);
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_numbers() {
        assert_eq!(escape_bytes(b"ok\xff\xc3"), r"ok\xff\xc3");
        let path = Path::new("/a\n\x1b[31m\u{202e}b");
        assert_eq!(shown(path).to_string(), r"/a\n\x1b[31m\u{202e}b");
    }

    #[test]
    fn a_quoted_value_cannot_end_early() {
        let mut out = String::new();
        quote(&mut out, b"a\"b\\c\n\xfe");
        assert_eq!(out, r#""a\"b\\c\n\xfe""#);
    }
}
