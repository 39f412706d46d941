//! Text inside JSON and CSV.

use std::borrow::Cow;

use usdtrec_format::escape::{escape, escape_json};

use crate::text::buffer::Text;

impl Text {
    /// Appends a JSON string (RFC 8259) with its quotes, harmless for a terminal.
    pub fn json_string(&mut self, text: &str) {
        // Without an early end this is a loop over wide words.
        let is_special = |byte| !matches!(byte, b' '..=b'~') | matches!(byte, b'"' | b'\\');
        if !text.bytes().fold(false, |any, byte| any | is_special(byte)) {
            self.byte(b'"');
            self.string(text);
            self.byte(b'"');
        } else if text.is_ascii() {
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
pub fn json_string(text: &str) -> String {
    let mut out = Text::default();
    out.json_string(text);
    out.into_string()
}

/// How strings are written in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Csv {
    /// What a spreadsheet would take for a formula has an apostrophe before it.
    Guarded,
    /// As they are.
    Raw,
}

impl Csv {
    /// A field (RFC 4180), escaped as text is: in quotes only where it has to be.
    ///
    /// Strings come from traced programs, and spreadsheets run what begins as a formula does. Numbers stay as they are. A tab and
    /// a carriage return, which spreadsheets pass over before a formula, are escaped.
    pub(crate) fn field(self, text: &str) -> Cow<'_, str> {
        let mut text = escape(text);
        if self == Self::Guarded && is_formula(&text) {
            text = Cow::Owned(format!("'{text}"));
        }
        if text.contains(['"', ',']) {
            Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
        } else {
            text
        }
    }

    /// The field of a string that is there: an empty one has quotes, as readers take nothing between commas for no value.
    pub(crate) fn string(self, text: &str) -> Cow<'_, str> {
        match text {
            "" => Cow::Borrowed("\"\""),
            text => self.field(text),
        }
    }
}

/// Whether a spreadsheet would take a string for a formula: it begins with `=`, `+`, `-`, `@` or their full-width forms, and is
/// no number.
fn is_formula(text: &str) -> bool {
    text.starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) && text.parse::<f64>().is_err()
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
        for csv in [Csv::Guarded, Csv::Raw] {
            assert_eq!(csv.field("a b"), "a b");
            assert_eq!([csv.field(""), csv.string("")], ["", "\"\""]);
            assert_eq!(csv.field("a,b"), "\"a,b\"");
            assert_eq!(csv.field("say \"hi\"\n"), "\"say \"\"hi\"\"\\n\"");
            assert_eq!(csv.field("\x1b[2J\u{202e}"), r"\x1b[2J\u{202e}");
        }
    }

    #[test]
    fn a_formula_is_a_string_and_a_number_a_number() {
        for formula in ["=1+1", "+x", "-x", "@SUM(A1)", "--1", "=", "＝1"] {
            assert_eq!(Csv::Guarded.field(formula), format!("'{formula}"));
            assert_eq!(Csv::Raw.field(formula), formula);
        }
        assert_eq!(Csv::Guarded.field("=A1,B1"), "\"'=A1,B1\"");
        assert_eq!(Csv::Guarded.field("\t=1"), "\\t=1");
        for number in ["-1", "+1", "-2.5e-9", "-inf", "0x1", "1-2", "a=b"] {
            assert_eq!(Csv::Guarded.field(number), number);
        }
    }
}
