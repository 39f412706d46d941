//! How the values of an argument are shown, by its type.
//!
//! | type | text and CSV | JSON |
//! |---|---|---|
//! | integers | `-1` | `-1` |
//! | floats | shortest that reads back, `NaN`, `inf` | the same; `"NaN"`, `"inf"` |
//! | `bool` | `true`, `false` | `true`, `false` |
//! | `char` | `'a'`, `'\n'`; `-1` where it is none | `"a"`; `-1` |
//! | `ptr`, `bytes` not captured | `0x7f10` | `"0x7f10"` |
//! | `bytes`, captured | `[00 ff]`, `[00 ff …]` if cut; `00ff` in CSV | `"00ff"` |
//! | `enum` | `scavenge(1)`; `7` without a word | `"scavenge(1)"`; `7` |
//! | `flags` | `read\|write(0x3)`, `read\|0x80(0x81)`, `0x80` without a word, `0`, `-1` | the same as strings; `0`, `-1` |
//! | `str`, captured | `"GET"`, `"GE"…` if cut | `"GET"` |
//! | looks like a text | `0x7f10 "GET"`; `GET` in CSV | `"GET"`, the number in `numbers` |
//! | `str`, address alone | `<string at 0x7f10>`, `NULL`; nothing in CSV | `null`, the reason in `missing` |
//! | `str mangled`, a name of C++ or Rust | `"std::exception"` | `"St9exception"`, the readable one in `demangled` |
//! | unit of time, on request | `312us`, `1.23ms`; text alone | the number |
//! | unit of memory, on request | `1.5KiB`; text alone | the number |
//! | missing | `<reason>`; nothing in CSV | `null`, the reason in `missing` |

use usdtrec_format::escape::escape;
use usdtrec_format::scaled::{duration, size};
use usdtrec_format::schema::Words;
use usdtrec_format::{StringAt, Value};
use usdtrec_trace::form::Form;

use crate::text::buffer::Text;
use crate::text::quoted::Csv;

impl Text {
    /// Appends a value for people.
    #[inline]
    pub fn formed(&mut self, form: &Form, value: &Value) {
        match form {
            Form::Plain => self.value(value),
            form => self.special(form, value),
        }
    }

    fn special(&mut self, form: &Form, value: &Value) {
        match (form, value) {
            (Form::Address, Value::String(string)) => {
                self.fixed(b"0x");
                self.hex(string.address);
            }
            (Form::Bytes, Value::String(bytes)) => self.byte_array(bytes),
            (Form::Address | Form::Bytes, Value::Unsigned(number)) => {
                self.fixed(b"0x");
                self.hex(*number);
            }
            (Form::Mangled, Value::String(_)) => match form.readable(value) {
                Some(name) => self.quoted(name.as_bytes(), false),
                None => self.value(value),
            },
            (Form::StringAddress | Form::Mangled, Value::Unsigned(0)) => self.fixed(b"NULL"),
            (Form::StringAddress | Form::Mangled, Value::Unsigned(number)) => {
                self.fixed(b"<string at 0x");
                self.hex(*number);
                self.byte(b'>');
            }
            (Form::Time(each), value) => match as_f64(value) {
                Some(number) => self.string(&duration(number * *each as f64)),
                None => self.value(value),
            },
            (Form::Memory(each), value) => match as_f64(value) {
                Some(number) => self.string(&size(number * *each as f64)),
                None => self.value(value),
            },
            (form, value) => match as_i64(value) {
                Some(number) => self.word(form, number, value),
                None => self.value(value),
            },
        }
    }

    fn byte_array(&mut self, array: &StringAt) {
        self.byte(b'[');
        for (at, byte) in array.bytes.iter().enumerate() {
            if at > 0 {
                self.byte(b' ');
            }
            self.string(&format!("{byte:02x}"));
        }
        self.string(if array.cut { " …]" } else { "]" });
    }

    /// Bytes in hexadecimal, one after the other.
    pub fn hex_bytes(&mut self, bytes: &[u8]) {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        for byte in bytes {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            self.fixed(&[DIGITS[high], DIGITS[low]]);
        }
    }

    fn word(&mut self, form: &Form, number: i64, value: &Value) {
        match form {
            Form::Bool => self.string(if number == 0 { "false" } else { "true" }),
            Form::Char => match u8::try_from(number & 0xff).map(char::from) {
                // A negative code is that of an upper byte where characters are signed.
                Ok(letter) if (-128..256).contains(&number) => {
                    self.byte(b'\'');
                    let letter = match letter {
                        '\'' | '\\' | '\0'..='\x1f' | '\x7f'..='\u{9f}' => escaped(letter),
                        letter => letter.to_string(),
                    };
                    self.string(&letter);
                    self.byte(b'\'');
                }
                _ => self.value(value),
            },
            Form::Enum(words) => match words.get(&number) {
                Some(word) => {
                    self.string(&usdtrec_format::escape::escape(word));
                    self.byte(b'(');
                    self.value(value);
                    self.byte(b')');
                }
                None => self.value(value),
            },
            // Of a negative number, it is not known how many bits it has.
            Form::Flags(words) if number >= 0 => self.flags(words, number.cast_unsigned()),
            _ => self.value(value),
        }
    }

    fn flags(&mut self, words: &Words, bits: u64) {
        let mut rest = bits;
        let mut any = false;
        for (flag, word) in words.iter() {
            let flag = flag.cast_unsigned();
            let fits = if bits == 0 {
                flag == 0
            } else {
                flag != 0 && bits & flag == flag && rest & flag != 0
            };
            if fits {
                if std::mem::replace(&mut any, true) {
                    self.byte(b'|');
                }
                self.string(&usdtrec_format::escape::escape(word));
                rest &= !flag;
            }
        }
        if !any {
            if bits != 0 {
                self.fixed(b"0x");
            }
            return self.hex(bits);
        }
        if rest != 0 {
            self.fixed(b"|0x");
            self.hex(rest);
        }
        self.fixed(b"(0x");
        self.hex(bits);
        self.byte(b')');
    }

    /// Appends a value for JSON.
    #[inline]
    pub fn formed_json(&mut self, form: &Form, value: &Value) {
        match form {
            Form::Plain | Form::Time(_) | Form::Memory(_) => self.json_value(value),
            Form::Bytes if let Value::String(array) = value => {
                self.byte(b'"');
                self.hex_bytes(&array.bytes);
                self.byte(b'"');
            }
            form => self.special_json(form, value),
        }
    }

    fn special_json(&mut self, form: &Form, value: &Value) {
        let number = as_i64(value);
        let word = match (form, number) {
            (Form::Bool, Some(number)) => {
                return self.string(if number == 0 { "false" } else { "true" });
            }
            (Form::Char, Some(number)) if (-128..256).contains(&number) => {
                let letter = char::from((number & 0xff) as u8);
                return self.json_string(letter.encode_utf8(&mut [0; 4]));
            }
            (form, Some(_)) if form.is_string() => return self.fixed(b"null"),
            (Form::Enum(words), Some(number)) => words.contains_key(&number),
            (Form::Flags(_), Some(number)) => number > 0,
            (Form::Address | Form::Bytes, Some(_)) => true,
            _ => false,
        };
        if word {
            let mut text = Self::default();
            text.special(form, value);
            self.json_string(&text.into_string());
        } else {
            self.json_value(value);
        }
    }

    /// Appends a value for CSV.
    pub(crate) fn formed_csv(&mut self, csv: Csv, form: &Form, value: &Value) {
        match form {
            Form::Plain | Form::Time(_) | Form::Memory(_) => self.csv_value(csv, value),
            Form::Bytes if let Value::String(array) = value => self.hex_bytes(&array.bytes),
            form if form.missing(value).is_some() => {}
            form if let Some(name) = form.readable(value) => {
                self.string(&csv.field(&escape(&name)));
            }
            form if as_i64(value).is_some() => {
                let mut text = Self::default();
                text.special(form, value);
                self.string(&csv.field(&text.into_string()));
            }
            _ => self.csv_value(csv, value),
        }
    }
}

fn escaped(letter: char) -> String {
    match letter {
        '\'' => "\\'".to_owned(),
        '\\' => "\\\\".to_owned(),
        other => usdtrec_format::escape::escape_bytes(&[other as u8]).into_owned(),
    }
}

/// The bits of an integer as a signed one.
const fn as_i64(value: &Value) -> Option<i64> {
    match value {
        Value::Unsigned(number) => Some(number.cast_signed()),
        Value::Signed(number) => Some(*number),
        _ => None,
    }
}

fn as_f64(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Unsigned(number) => *number as f64,
        Value::Signed(number) => *number as f64,
        Value::Float32(number) => f64::from(*number),
        Value::Float64(number) => *number,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use Value::{Float64, Signed, Unsigned};

    use super::*;

    fn all(form: &Form, value: &Value) -> [String; 3] {
        let csv = |out: &mut Text, form: &Form, value: &Value| {
            out.formed_csv(Csv::Guarded, form, value);
        };
        [Text::formed, Text::formed_json, csv].map(|write| {
            let mut out = Text::default();
            write(&mut out, form, value);
            out.into_string()
        })
    }

    fn text(text: &str) -> Value {
        Value::String(StringAt {
            address: 0x1000,
            bytes: text.as_bytes().to_vec(),
            cut: false,
            guessed: false,
            from_file: false,
        })
    }

    fn words(pairs: &[(i64, &str)]) -> Words {
        let pairs = pairs
            .iter()
            .map(|(number, word)| (*number, (*word).to_owned()));
        Words::new(pairs.collect())
    }

    #[test]
    fn every_form_in_all_formats() {
        let kind = Form::Enum(words(&[(1, "scavenge"), (-1, "a,b")]));
        let mode = Form::Flags(words(&[(1, "read"), (2, "write"), (0x30, "both")]));
        for (form, value, expected) in [
            (&Form::Plain, Signed(-1), ["-1", "-1", "-1"]),
            (&Form::Bool, Unsigned(0), ["false"; 3]),
            (&Form::Bool, Signed(-1), ["true"; 3]),
            (&Form::Char, Unsigned(97), ["'a'", "\"a\"", "'a'"]),
            (&Form::Char, Unsigned(10), ["'\\n'", "\"\\n\"", "'\\n'"]),
            (&Form::Char, Signed(300), ["300"; 3]),
            (
                &Form::Address,
                Unsigned(0x7f10),
                ["0x7f10", "\"0x7f10\"", "0x7f10"],
            ),
            (
                &Form::StringAddress,
                Unsigned(0x7f10),
                ["<string at 0x7f10>", "null", ""],
            ),
            (&Form::StringAddress, Unsigned(0), ["NULL", "null", ""]),
            (
                &kind,
                Signed(1),
                ["scavenge(1)", "\"scavenge(1)\"", "scavenge(1)"],
            ),
            (&kind, Signed(-1), ["a,b(-1)", "\"a,b(-1)\"", "\"a,b(-1)\""]),
            (&kind, Unsigned(7), ["7"; 3]),
            (
                &mode,
                Unsigned(3),
                ["read|write(0x3)", "\"read|write(0x3)\"", "read|write(0x3)"],
            ),
            (
                &mode,
                Unsigned(0x33),
                [
                    "read|write|both(0x33)",
                    "\"read|write|both(0x33)\"",
                    "read|write|both(0x33)",
                ],
            ),
            (
                &mode,
                Unsigned(0x91),
                ["read|0x90(0x91)", "\"read|0x90(0x91)\"", "read|0x90(0x91)"],
            ),
            (&mode, Unsigned(0x80), ["0x80", "\"0x80\"", "0x80"]),
            (&mode, Unsigned(0), ["0"; 3]),
            (&mode, Signed(-1), ["-1"; 3]),
            (
                &Form::Mangled,
                text("St9exception"),
                ["\"std::exception\"", "\"St9exception\"", "std::exception"],
            ),
            (
                &Form::Mangled,
                text("plain"),
                ["\"plain\"", "\"plain\"", "plain"],
            ),
            (&Form::Mangled, Unsigned(0), ["NULL", "null", ""]),
            (&Form::Time(1000), Unsigned(312), ["312us", "312", "312"]),
            (
                &Form::Memory(1),
                Signed(-1536),
                ["-1.5KiB", "-1536", "-1536"],
            ),
            (
                &Form::Time(1_000_000),
                Float64(2.5),
                ["2.5ms", "2.5", "2.5"],
            ),
        ] {
            assert_eq!(all(form, &value), expected, "{form:?} {value:?}");
        }
    }
}
