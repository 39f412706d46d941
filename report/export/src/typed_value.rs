//! Values of arguments for formats whose values have types.

use std::borrow::Cow;

use usdtrec_format::Value;
use usdtrec_trace::form::Form;
use usdtrec_view::text::buffer::Text;

/// A value of a format that has types.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypedValue<'v> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Address(u64),
    /// What is not UTF-8 in it is U+FFFD; then [`string_bytes`] has the bytes.
    String(Cow<'v, str>),
    /// There is no value; the reason.
    Missing(String),
}

impl<'v> TypedValue<'v> {
    /// The value, as `script --format json` has it.
    // A value that is returned in memory is read before it is stored, for which the processor waits.
    #[inline(always)]
    pub(crate) fn new(form: &Form, value: &'v Value) -> Self {
        match (form, value) {
            (Form::Plain | Form::Time(_) | Form::Memory(_), Value::Unsigned(number)) => {
                Self::Unsigned(*number)
            }
            (Form::Plain | Form::Time(_) | Form::Memory(_), Value::Signed(number)) => {
                Self::Signed(*number)
            }
            (_, Value::Float32(number)) => Self::Float((*number).into()),
            (_, Value::Float64(number)) => Self::Float(*number),
            (Form::Bool, Value::Unsigned(number)) => Self::Bool(*number != 0),
            (Form::Bool, Value::Signed(number)) => Self::Bool(*number != 0),
            (Form::Bytes, Value::String(array)) => {
                let mut text = Text::default();
                text.hex_bytes(&array.bytes);
                Self::String(text.into_string().into())
            }
            (Form::Address, Value::String(string)) => Self::Address(string.address),
            (_, Value::String(string)) => Self::String(shown_string(&string.bytes)),
            (form, value) => Self::special(form, value),
        }
    }

    /// A copy that outlives the hit.
    pub(crate) fn owned(self) -> TypedValue<'static> {
        match self {
            Self::Unsigned(number) => TypedValue::Unsigned(number),
            Self::Signed(number) => TypedValue::Signed(number),
            Self::Float(number) => TypedValue::Float(number),
            Self::Bool(is) => TypedValue::Bool(is),
            Self::Address(address) => TypedValue::Address(address),
            Self::String(text) => TypedValue::String(text.into_owned().into()),
            Self::Missing(reason) => TypedValue::Missing(reason),
        }
    }

    fn special(form: &Form, value: &Value) -> Self {
        if let Some(reason) = form.missing(value) {
            return Self::Missing(reason);
        }
        if let (Form::Address | Form::Bytes, Value::Unsigned(address)) = (form, value) {
            return Self::Address(*address);
        }
        if let Value::Missing(missing) = value {
            return Self::Missing(missing.to_string());
        }
        let mut text = Text::default();
        text.formed_json(form, value);
        match serde_json::from_slice::<String>(text.as_slice()) {
            Ok(word) => Self::String(word.into()),
            Err(_) => match value {
                Value::Signed(number) => Self::Signed(*number),
                Value::Unsigned(number) => Self::Unsigned(*number),
                other => Self::Missing(format!("{other:?}")),
            },
        }
    }
}

/// A string, with U+FFFD for what is not UTF-8.
pub(crate) fn shown_string(bytes: &[u8]) -> Cow<'_, str> {
    // The check alone is several times as fast on ASCII as `from_utf8_lossy`, which looks at each character.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The bytes of a string that is not UTF-8.
pub(crate) fn string_bytes<'v>(form: &Form, value: &'v Value) -> Option<&'v [u8]> {
    match value {
        Value::String(string)
            if *form != Form::Bytes && std::str::from_utf8(&string.bytes).is_err() =>
        {
            Some(&string.bytes)
        }
        _ => None,
    }
}

/// Whether a string is longer than what was captured.
pub(crate) const fn is_cut(value: &Value) -> bool {
    matches!(value, Value::String(string) if string.cut)
}

/// The address of what only looks like a string.
pub(crate) const fn guessed_address(value: &Value) -> Option<u64> {
    match value {
        Value::String(string) if string.guessed => Some(string.address),
        _ => None,
    }
}
