//! Arguments of an event in JSON: `"args":{…}`, and the members next to it that say what the values do not.

use usdtrec_format::Value;
use usdtrec_trace::form::Form;

use crate::text::buffer::{Piece, Text};

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
            Value::String(string) => {
                !string.cut
                    && !string.guessed
                    && !string.from_file
                    && *self.form != Form::Mangled
                    && (*self.form == Form::Bytes || std::str::from_utf8(&string.bytes).is_ok())
            }
            _ => !self.form.is_string(),
        }
    }
}

/// Appends the member `args`, and `missing`, `numbers`, `from_file`, `demangled`, `cut` and `bytes` where arguments need them.
#[inline]
pub(crate) fn put_arguments<'v>(
    arguments: &'v [JsonArgument],
    value: impl Fn(usize) -> Option<&'v Value> + Clone,
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
        out.formed_json(argument.form, argument.value);
    }
    out.byte(b'}');
    if !complete {
        details(&named, out);
    }
}

/// What a value does not say.
struct JsonDetail {
    /// The start of the object with those arguments that it applies to.
    start: &'static [u8],
    /// Appends it; returns whether there is something to say.
    write: fn(&Form, &Value, &mut Text) -> bool,
}

/// All that values may not say.
const DETAILS: [JsonDetail; 6] = [
    JsonDetail {
        start: b",\"missing\":{",
        write: |form, value, out| put_if_known(form.missing(value), out),
    },
    JsonDetail {
        start: b",\"numbers\":{",
        write: |_, value, out| match value {
            Value::String(string) if string.guessed => {
                out.unsigned(string.address);
                true
            }
            _ => false,
        },
    },
    JsonDetail {
        start: b",\"from_file\":{",
        write: |_, value, out| {
            put_if(
                matches!(value, Value::String(string) if string.from_file),
                out,
            )
        },
    },
    JsonDetail {
        start: b",\"demangled\":{",
        write: |form, value, out| put_if_known(form.readable(value), out),
    },
    JsonDetail {
        start: b",\"cut\":{",
        write: |_, value, out| put_if(matches!(value, Value::String(string) if string.cut), out),
    },
    JsonDetail {
        start: b",\"bytes\":{",
        write: |form, value, out| match value {
            Value::String(string)
                if *form != Form::Bytes && std::str::from_utf8(&string.bytes).is_err() =>
            {
                out.byte(b'"');
                out.hex_bytes(&string.bytes);
                out.byte(b'"');
                true
            }
            _ => false,
        },
    },
];

/// Appends `true` if something is so.
fn put_if(is_so: bool, out: &mut Text) -> bool {
    if is_so {
        out.fixed(b"true");
    }
    is_so
}

/// Appends a string, if there is one; returns whether there is.
fn put_if_known(string: Option<String>, out: &mut Text) -> bool {
    string.is_some_and(|string| {
        out.json_string(&string);
        true
    })
}

/// Appends what the values of `args` do not say, as objects with the arguments that it applies to.
fn details<'v>(named: &(impl Iterator<Item = NamedValue<'v>> + Clone), out: &mut Text) {
    for JsonDetail { start, write } in &DETAILS {
        object(start, named.clone(), out, write);
    }
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
    use usdtrec_format::StringAt;

    use super::*;

    #[test]
    fn an_object_has_the_members_that_something_is_written_of() {
        let text = |bytes: &[u8], cut| {
            Value::String(StringAt {
                address: 1,
                bytes: bytes.to_vec(),
                cut,
                guessed: false,
                from_file: false,
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
        let cut = |value: &Value| matches!(value, Value::String(string) if string.cut);
        assert_eq!(written(&cut), r#","cut":{"b":true,"c":true}"#);
        assert_eq!(written(&|_| false), "");
    }
}
