//! Text inside JSON and CSV.

use std::borrow::Cow;

use super::buffer::Text;

impl Text {
    /// Appends a JSON string (RFC 8259) with its quotes.
    pub(crate) fn json_string(&mut self, text: &str) {
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

/// A CSV field (RFC 4180): in quotes only where it has to be.
pub(crate) fn csv_field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_strings_read_back() {
        for text in ["", "plain", "a\"b\\c\n\t\r\0\x1f\x7f", "größe 数 \u{9b}"] {
            let out = json_string(text);
            assert!(!out.bytes().any(|byte| byte.is_ascii_control()));
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn csv_fields_are_quoted_where_needed() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a,b"), "\"a,b\"");
        assert_eq!(csv_field("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
    }
}
