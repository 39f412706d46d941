//! Arguments of an event in JSON: `"args":{…}`, and the members next to it that say what the values do not.

use usdtrec_format::Value;

use crate::trace::form::Form;
use crate::view::text::buffer::{Piece, Text};

/// Integers up to this one are exact where numbers are floats of 8 bytes, as in JavaScript.
const MOST_EXACT: u64 = 1 << 53;

/// How integers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonIntegers {
    /// As numbers.
    Numbers,
    /// As strings beyond ±2^53, for readers whose numbers are floats.
    ExactOrStrings,
}

/// An argument that is shown.
#[derive(Debug)]
pub(crate) struct JsonArgument {
    /// Its place among the event's.
    pub(crate) place: usize,
    /// The name as a JSON string, and a colon.
    pub(crate) name: Piece,
    /// How its values are shown.
    pub(crate) form: Form,
}

/// A value of an argument.
#[derive(Clone, Copy)]
struct NamedValue<'v> {
    name: &'v Piece,
    form: &'v Form,
    value: &'v Value,
}

impl NamedValue<'_> {
    /// Whether the member of `args` says all about the value.
    fn is_complete(&self) -> bool {
        match self.value {
            Value::Missing(_) => false,
            Value::String(text) => {
                !text.cut
                    && !text.guessed
                    && *self.form != Form::Mangled
                    && (*self.form == Form::Bytes || std::str::from_utf8(&text.bytes).is_ok())
            }
            _ => !self.form.is_text(),
        }
    }
}

/// Appends the member `args`, and `missing`, `numbers`, `demangled`, `cut` and `bytes` where arguments need them.
#[inline]
pub(crate) fn put_arguments<'v>(
    arguments: &'v [JsonArgument],
    value: impl Fn(usize) -> Option<&'v Value> + Clone,
    integers: JsonIntegers,
    out: &mut Text,
) {
    out.fixed(b"\"args\":{");
    let named = arguments.iter().filter_map(|argument| {
        Some(NamedValue {
            name: &argument.name,
            form: &argument.form,
            value: value(argument.place)?,
        })
    });
    let mut complete = true;
    let mut comma = false;
    for argument in named.clone() {
        if std::mem::replace(&mut comma, true) {
            out.byte(b',');
        }
        complete &= argument.is_complete();
        out.piece(argument.name);
        let start = out.len();
        out.formed_json(argument.form, argument.value);
        if integers == JsonIntegers::ExactOrStrings
            && is_inexact(argument.value)
            && out.byte_at(start).is_some_and(|first| *first != b'"')
        {
            out.pad(start, 1, 1, b'"');
        }
    }
    out.byte(b'}');
    if !complete {
        details(&named, out);
    }
}

/// Whether a float of 8 bytes cannot be trusted to have the value of an integer.
const fn is_inexact(value: &Value) -> bool {
    match value {
        Value::Unsigned(number) => *number > MOST_EXACT,
        Value::Signed(number) => number.unsigned_abs() > MOST_EXACT,
        _ => false,
    }
}

/// Appends what the values of `args` do not say, as objects with the arguments that it applies to.
fn details<'v>(named: &(impl Iterator<Item = NamedValue<'v>> + Clone), out: &mut Text) {
    object(b",\"missing\":{", named.clone(), out, |form, value, out| {
        let reason = form.missing(value);
        reason.is_some_and(|reason| {
            out.json_string(&reason);
            true
        })
    });
    object(
        b",\"numbers\":{",
        named.clone(),
        out,
        |_, value, out| match value {
            Value::String(text) if text.guessed => {
                out.unsigned(text.address);
                true
            }
            _ => false,
        },
    );
    object(
        b",\"demangled\":{",
        named.clone(),
        out,
        |form, value, out| {
            let readable = form.readable(value);
            readable.is_some_and(|name| {
                out.json_string(&name);
                true
            })
        },
    );
    object(b",\"cut\":{", named.clone(), out, |_, value, out| {
        let cut = matches!(value, Value::String(text) if text.cut);
        if cut {
            out.fixed(b"true");
        }
        cut
    });
    object(
        b",\"bytes\":{",
        named.clone(),
        out,
        |form, value, out| match value {
            Value::String(text)
                if *form != Form::Bytes && std::str::from_utf8(&text.bytes).is_err() =>
            {
                out.byte(b'"');
                out.hex_bytes(&text.bytes);
                out.byte(b'"');
                true
            }
            _ => false,
        },
    );
}

/// Appends an object with those arguments of which `write` writes something; nothing without such an argument.
fn object<'v>(
    start: &[u8],
    arguments: impl Iterator<Item = NamedValue<'v>>,
    out: &mut Text,
    write: impl Fn(&Form, &Value, &mut Text) -> bool,
) {
    let mut before = start;
    for NamedValue { name, form, value } in arguments {
        let length = out.len();
        out.bytes(before);
        out.piece(name);
        if write(form, value, out) {
            before = b",";
        } else {
            out.drop_last(out.len() - length);
        }
    }
    if before == b"," {
        out.byte(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use usdtrec_format::StringAt;

    #[test]
    fn an_object_has_the_members_that_something_is_written_of() {
        let text = |bytes: &[u8], cut| {
            Value::String(StringAt {
                address: 1,
                bytes: bytes.to_vec(),
                cut,
                guessed: false,
            })
        };
        let values = [text(b"a", false), text(b"b\xff", true), text(b"c", true)];
        let names = ["\"a\":", "\"b\":", "\"c\":"].map(|name| Piece::new(name.as_bytes()));
        let written = |write: &dyn Fn(&Value) -> bool| {
            let mut out = Text::default();
            let arguments = names.iter().zip(&values);
            let form = &Form::Plain;
            let arguments = arguments.map(|(name, value)| NamedValue { name, form, value });
            object(b",\"cut\":{", arguments, &mut out, |_, value, out| {
                out.fixed(b"true");
                write(value)
            });
            out.into_string()
        };
        let cut = |value: &Value| matches!(value, Value::String(text) if text.cut);
        assert_eq!(written(&cut), r#","cut":{"b":true,"c":true}"#);
        assert_eq!(written(&|_| false), "");
    }
}
