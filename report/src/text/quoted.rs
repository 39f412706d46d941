//! Text inside JSON and CSV.

use std::borrow::Cow;

/// A JSON string (RFC 8259) with its quotes.
pub(crate) fn json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                out.extend_from_slice(b"\\u00");
                out.push(b"0123456789abcdef"[usize::from(byte >> 4)]);
                out.push(b"0123456789abcdef"[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
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
            let mut out = Vec::new();
            json_string(&mut out, text);
            assert!(!out.iter().any(|byte| byte.is_ascii_control()));
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn csv_fields_are_quoted_where_needed() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a,b"), "\"a,b\"");
        assert_eq!(csv_field("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
    }
}
