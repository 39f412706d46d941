//! Text inside JSON and CSV.

use std::borrow::Cow;

use usdtrec_format::escape::{escape, escape_json};

use super::buffer::Text;

impl Text {
    /// Appends a JSON string (RFC 8259) with its quotes, harmless for a terminal.
    pub(crate) fn json_string(&mut self, text: &str) {
        if text.is_ascii() {
            self.json_bytes(text);
        } else {
            let mut string = Self::default();
            string.json_bytes(text);
            self.string(&escape_json(&string.into_string()));
        }
    }

    fn json_bytes(&mut self, text: &str) {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        self.byte(b'"');
        for byte in text.bytes() {
            match byte {
                b'"' => self.fixed(b"\\\""),
                b'\\' => self.fixed(b"\\\\"),
                b'\n' => self.fixed(b"\\n"),
                b'\r' => self.fixed(b"\\r"),
                b'\t' => self.fixed(b"\\t"),
                0..0x20 | 0x7f => {
                    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                    self.fixed(&[b'\\', b'u', b'0', b'0', DIGITS[high], DIGITS[low]]);
                }
                _ => self.byte(byte),
            }
        }
        self.byte(b'"');
    }
}

/// A JSON string (RFC 8259) with its quotes.
pub(crate) fn json_string(text: &str) -> String {
    let mut out = Text::default();
    out.json_string(text);
    out.into_string()
}

/// A CSV field (RFC 4180), escaped as text is: in quotes only where it has to be.
pub(crate) fn csv_field(text: &str) -> Cow<'_, str> {
    let text = escape(text);
    if text.contains(['"', ',']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_strings_read_back() {
        for text in ["", "plain", "a\"b\\c\n\t\r\0\x1f\x7f", "größe 数 \u{9b}"] {
            let out = json_string(text);
            assert!(!out.contains(char::is_control), "{out}");
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn csv_fields_are_quoted_where_needed() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a,b"), "\"a,b\"");
        assert_eq!(csv_field("say \"hi\"\n"), "\"say \"\"hi\"\"\\n\"");
        assert_eq!(csv_field("\x1b[2J\u{202e}"), r"\x1b[2J\u{202e}");
    }
}
