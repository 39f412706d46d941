//! Values as text.

use std::borrow::Cow;

use usdtrec_format::escape::{escape, escape_bytes, quote};
use usdtrec_format::{Missing, Value};

use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// What follows a string that was cut.
const CUT: &str = "…";

impl Text {
    /// Appends a value for people: integers in decimal, floats in shortest form, `<reason>` for what is missing.
    #[inline]
    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Unsigned(number) => self.unsigned(*number),
            Value::Signed(number) => self.signed(*number),
            Value::Float32(number) => self.float32(*number),
            Value::Float64(number) => self.float64(*number),
            Value::String(string) => {
                if string.guessed {
                    self.fixed(b"0x");
                    self.hex(string.address);
                    self.byte(b' ');
                }
                self.quoted(&string.bytes, string.cut);
            }
            other => self.no_number(other),
        }
    }

    /// Appends a string in quotes, and an ellipsis if it was cut.
    pub(crate) fn quoted(&mut self, bytes: &[u8], cut: bool) {
        let plain = |byte: &u8| (b' '..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
        if bytes.iter().all(plain) {
            self.byte(b'"');
            self.bytes(bytes);
            self.byte(b'"');
        } else {
            let mut quoted = String::new();
            quote(&mut quoted, bytes);
            self.string(&quoted);
        }
        if cut {
            self.string(CUT);
        }
    }

    /// Appends a string without quotes, and an ellipsis if it was cut.
    pub(crate) fn unquoted(&mut self, bytes: &[u8], cut: bool) {
        self.string(&with_cut(escape_bytes(bytes), cut));
    }

    #[cold]
    fn no_number(&mut self, value: &Value) {
        let words = match value {
            Value::Missing(Missing::Null) => return self.fixed(b"NULL"),
            Value::Missing(Missing::Absent) => return self.byte(b'-'),
            Value::Missing(missing) => missing.to_string(),
            // A kind that came after this code.
            other => format!("{other:?}"),
        };
        self.byte(b'<');
        self.string(&escape(&words));
        self.byte(b'>');
    }

    /// Appends a value for JSON: numbers as such and exact, `null` for what is missing. JSON has no words for
    /// infinities and NaN: they are the strings `"inf"`, `"-inf"`, `"NaN"`.
    #[inline]
    pub(crate) fn json_value(&mut self, value: &Value) {
        match value {
            Value::Missing(_) => self.fixed(b"null"),
            Value::Unsigned(number) => self.unsigned(*number),
            Value::Signed(number) => self.signed(*number),
            Value::Float32(number) if number.is_finite() => self.float32(*number),
            Value::Float64(number) if number.is_finite() => self.float64(*number),
            // What is no UTF-8 becomes U+FFFD.
            Value::String(string) => {
                self.json_string(&String::from_utf8_lossy(&string.bytes));
            }
            other => {
                let mut text = Self::default();
                text.value(other);
                self.json_string(&text.into_string());
            }
        }
    }

    /// Appends a value for CSV: as in text, nothing for what is missing.
    pub(crate) fn csv_value(&mut self, csv: Csv, value: &Value) {
        match value {
            Value::Missing(_) => {}
            Value::String(string) => {
                let shown = with_cut(escape_bytes(&string.bytes), string.cut);
                self.string(&csv.string(&shown));
            }
            value => self.value(value),
        }
    }
}

fn with_cut(mut text: Cow<'_, str>, cut: bool) -> Cow<'_, str> {
    if cut {
        text.to_mut().push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: &Value) -> [String; 3] {
        let csv = |out: &mut Text, value: &Value| out.csv_value(Csv::Guarded, value);
        [Text::value, Text::json_value, csv].map(|write| {
            let mut out = Text::default();
            write(&mut out, value);
            out.into_string()
        })
    }

    #[test]
    fn numbers_are_the_same_everywhere() {
        assert_eq!(all(&Value::Unsigned(u64::MAX)), ["18446744073709551615"; 3]);
        assert_eq!(all(&Value::Signed(-1)), ["-1"; 3]);
        assert_eq!(all(&Value::Float32(0.1)), ["0.1"; 3]);
        assert_eq!(all(&Value::Float64(2.5e-9)), ["2.5e-9"; 3]);
    }

    #[test]
    fn what_is_missing_is_said_or_left_out() {
        let missing = Value::Missing(Missing::Register("xmm0"));
        assert_eq!(all(&missing), ["<xmm0 not captured>", "null", ""]);
        assert_eq!(all(&Value::Missing(Missing::Null)), ["NULL", "null", ""]);
        let odd = Value::Missing(Missing::Operand("\x1b[2J: unknown".to_owned()));
        assert_eq!(all(&odd)[0], "<\\x1b[2J: unknown>");
    }

    #[test]
    fn strings_are_quoted_and_say_when_they_are_cut() {
        let text = |bytes: &[u8], cut| {
            Value::String(usdtrec_format::StringAt {
                address: 0x1000,
                bytes: bytes.to_vec(),
                cut,
                guessed: false,
                from_file: false,
            })
        };
        assert_eq!(all(&text(b"GET", false)), ["\"GET\"", "\"GET\"", "GET"]);
        assert_eq!(all(&text(b"", false)), ["\"\""; 3]);
        assert_eq!(
            all(&text(b"a,b", true)),
            ["\"a,b\"…", "\"a,b\"", "\"a,b…\""]
        );
        assert_eq!(
            all(&text(b"\"\n", false)),
            ["\"\\\"\\n\"", "\"\\\"\\n\"", "\"\"\"\\n\""]
        );
    }

    #[test]
    fn what_only_looks_like_a_string_keeps_its_number() {
        let text = Value::String(usdtrec_format::StringAt {
            address: 0x1000,
            bytes: b"GET".to_vec(),
            cut: true,
            guessed: true,
            from_file: false,
        });
        assert_eq!(all(&text), ["0x1000 \"GET\"…", "\"GET\"", "GET…"]);
    }

    #[test]
    fn json_has_no_infinities() {
        assert_eq!(
            all(&Value::Float64(f64::INFINITY)),
            ["inf", "\"inf\"", "inf"]
        );
        assert_eq!(all(&Value::Float32(f32::NAN)), ["NaN", "\"NaN\"", "NaN"]);
    }
}
