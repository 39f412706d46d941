//! Values laid out as a template says.

use usdtrec_format::Value;
use usdtrec_format::escape::{escape_bytes, quote};
use usdtrec_trace::form::Form;

use crate::script::template::spec::{Align, Conversion, Spec};
use crate::text::buffer::Text;

/// Appends a text, which becomes harmless after it is cut.
pub(crate) fn text(text: &str, spec: Spec, out: &mut Text) {
    let start = out.len();
    let shown = first_chars(text.as_bytes(), spec.precision);
    if spec.kind == Conversion::Quoted {
        let mut quoted = String::new();
        quote(&mut quoted, shown);
        out.string(&quoted);
    } else {
        out.string(&escape_bytes(shown));
    }
    pad(start, spec, Align::Left, out);
}

#[inline]
pub(crate) fn unsigned(number: u64, spec: Spec, out: &mut Text) {
    let start = out.len();
    if spec.kind == Conversion::Hex {
        out.hex(number);
    } else {
        out.unsigned(number);
    }
    pad_number(start, spec, out);
}

#[inline]
pub(crate) fn signed(number: i64, spec: Spec, out: &mut Text) {
    let start = out.len();
    if number < 0 {
        out.byte(b'-');
    }
    if spec.kind == Conversion::Hex {
        out.hex(number.unsigned_abs());
    } else {
        out.unsigned(number.unsigned_abs());
    }
    pad_number(start, spec, out);
}

pub(crate) fn hex(number: u64, spec: Spec, out: &mut Text) {
    let start = out.len();
    out.hex(number);
    pad_number(start, spec, out);
}

/// Appends an argument.
#[inline]
pub(crate) fn argument(form: &Form, spec: Spec, value: &Value, out: &mut Text) {
    let start = out.len();
    match (spec.kind, form, value) {
        (Conversion::Hex, _, Value::Unsigned(number)) => return unsigned(*number, spec, out),
        (Conversion::Hex, _, Value::Signed(number)) => return signed(*number, spec, out),
        (Conversion::Hex, _, Value::String(string)) => return hex(string.address, spec, out),
        (_, Form::Plain, Value::Unsigned(number)) => return unsigned(*number, spec, out),
        (_, Form::Plain, Value::Signed(number)) => return signed(*number, spec, out),
        (_, Form::Plain, Value::Float32(_) | Value::Float64(_)) => {
            float(value, spec.precision, out);
            return pad_number(start, spec, out);
        }
        (kind, form, Value::String(string)) if !matches!(form, Form::Address | Form::Bytes) => {
            let readable = form.readable(value);
            let bytes = readable
                .as_ref()
                .map_or(&string.bytes[..], String::as_bytes);
            let shown = first_chars(bytes, spec.precision);
            let cut = string.cut && shown.len() == bytes.len();
            if kind == Conversion::Quoted {
                out.quoted(shown, cut);
            } else {
                out.unquoted(shown, cut);
            }
        }
        _ => {
            out.formed(form, value);
            if matches!(form, Form::Time(_) | Form::Memory(_))
                && !matches!(value, Value::Missing(_))
            {
                return pad(start, spec, Align::Right, out);
            }
        }
    }
    pad(start, spec, Align::Left, out);
}

fn float(value: &Value, precision: Option<usize>, out: &mut Text) {
    match (precision, value) {
        (Some(digits), Value::Float32(number)) => out.string(&format!("{number:.digits$}")),
        (Some(digits), Value::Float64(number)) => out.string(&format!("{number:.digits$}")),
        _ => out.value(value),
    }
}

/// The first characters of a string; each byte that is no UTF-8 is one.
fn first_chars(text: &[u8], most: Option<usize>) -> &[u8] {
    let Some(mut left) = most.filter(|most| *most < text.len()) else {
        return text;
    };
    let mut end = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return text.get(..end).unwrap_or_default();
            }
            left -= 1;
            end += c.len_utf8();
        }
        let bytes = chunk.invalid().len().min(left);
        left -= bytes;
        end += bytes;
    }
    text.get(..end).unwrap_or_default()
}

/// Fills up with blanks what was appended from `start` on.
#[inline]
pub(crate) fn pad(start: usize, spec: Spec, default: Align, out: &mut Text) {
    if spec.width == 0 {
        return;
    }
    let missing = spec.width.saturating_sub(out.columns(start));
    let before = match spec.align.unwrap_or(default) {
        Align::Left => 0,
        Align::Middle => missing / 2,
        Align::Right => missing,
    };
    out.pad(start, before, missing - before, b' ');
}

/// Fills up with blanks or zeros the number that was appended from `start` on.
#[inline]
pub(crate) fn pad_number(start: usize, spec: Spec, out: &mut Text) {
    if spec.zeros && spec.align.is_none() {
        let missing = spec.width.saturating_sub(out.columns(start));
        let digits = start + usize::from(out.byte_at(start).is_some_and(|first| *first == b'-'));
        out.pad(digits, missing, 0, b'0');
    } else {
        pad(start, spec, Align::Right, out);
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::{Missing, StringAt};

    use super::*;

    fn shown(spec: &str, form: &Form, value: &Value) -> String {
        let mut out = Text::default();
        out.byte(b'|');
        argument(form, Spec::parse(spec).unwrap(), value, &mut out);
        out.byte(b'|');
        out.into_string()
    }

    #[test]
    fn numbers_stand_right_and_are_filled_up() {
        for (spec, expected) in [
            ("", "|-42|"),
            ("5", "|  -42|"),
            ("<5", "|-42  |"),
            ("^6", "| -42  |"),
            ("06", "|-00042|"),
            ("<06", "|-42   |"),
            ("2", "|-42|"),
            ("x", "|-2a|"),
            ("06x", "|-0002a|"),
            (".1?", "|-42|"),
        ] {
            assert_eq!(shown(spec, &Form::Plain, &Value::Signed(-42)), expected);
        }
        let most = Value::Unsigned(u64::MAX);
        assert_eq!(shown("x", &Form::Address, &most), "|ffffffffffffffff|");
        assert_eq!(shown("20", &Form::Address, &most), "|0xffffffffffffffff  |");
        assert_eq!(
            shown("7", &Form::Time(1000), &Value::Unsigned(312)),
            "|  312us|"
        );
        let float = Value::Float64(2.0 / 3.0);
        assert_eq!(shown("8.3", &Form::Plain, &float), "|   0.667|");
        assert_eq!(shown(".0", &Form::Plain, &Value::Float32(1.5)), "|2|");
        assert_eq!(shown("", &Form::Plain, &Value::Float32(1.5)), "|1.5|");
        assert_eq!(
            shown(".2", &Form::Plain, &Value::Float64(f64::NAN)),
            "|NaN|"
        );
    }

    #[test]
    fn texts_are_escaped_once_and_cut_before() {
        let shown = |spec: &str| {
            let mut out = Text::default();
            text("a\x1b[\\é", Spec::parse(spec).unwrap(), &mut out);
            out.into_string()
        };
        for (spec, expected) in [
            ("", r"a\x1b[\é"),
            ("?", r#""a\x1b[\\é""#),
            (".2", r"a\x1b"),
            (".2?", r#""a\x1b""#),
            ("6.2", r"a\x1b "),
        ] {
            assert_eq!(shown(spec), expected, "{spec}");
        }
    }

    #[test]
    fn strings_stand_left_and_are_harmless() {
        let text = |bytes: &[u8], cut| {
            Value::String(StringAt {
                address: 0x7f10,
                bytes: bytes.to_vec(),
                cut,
                guessed: false,
                from_file: false,
            })
        };
        let get = text(b"GET \"\xffx\n\xc3\xa9", true);
        for (spec, expected) in [
            ("", "|GET \"\\xffx\\né…|"),
            ("?", "|\"GET \\\"\\xffx\\né\"…|"),
            (".3", "|GET|"),
            (".7?", "|\"GET \\\"\\xffx\"|"),
            (".8", "|GET \"\\xffx\\n|"),
            (".9", "|GET \"\\xffx\\né…|"),
            (">6.3", "|   GET|"),
            ("05.3", "|GET  |"),
            ("x", "|7f10|"),
        ] {
            assert_eq!(shown(spec, &Form::StringAddress, &get), expected, "{spec}");
        }
        assert_eq!(
            shown("^5.1", &Form::Plain, &text("éa".as_bytes(), false)),
            "|  é  |"
        );
        let missing = Value::Missing(Missing::Register("xmm0"));
        assert_eq!(
            shown("4.1x", &Form::Plain, &missing),
            "|<xmm0 not captured>|"
        );
    }
}
