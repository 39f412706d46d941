//! A typed value of an argument.

use std::borrow::Cow;

use usdtrec_format::Value;
use usdtrec_trace::form::Form;

use crate::typed_value::TypedValue;

/// A value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum RowValue<'v> {
    /// An integer of a signed argument.
    Signed(i64),
    /// An integer of an unsigned argument.
    Unsigned(u64),
    /// A float of 4 bytes.
    Float32(f32),
    /// A float of 8 bytes.
    Float64(f64),
    /// `bool`.
    Bool(bool),
    /// A pointer.
    Address(u64),
    /// A value of an enumeration, flags, or a character.
    Word {
        /// What it is called.
        word: String,
        /// The number.
        number: i128,
    },
    /// A string.
    String(RowString<'v>),
    /// Memory whose length the schema says.
    Bytes {
        /// What was captured of it.
        bytes: &'v [u8],
        /// Whether it is longer than what was captured.
        is_cut: bool,
    },
    /// There is no value; the reason.
    Missing(String),
}

/// A string of a traced program. It may have control characters: escape it on the way to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowString<'v> {
    /// Its bytes without a NUL at the end, which may not be UTF-8.
    pub bytes: &'v [u8],
    /// Whether it is longer than what was captured.
    pub is_cut: bool,
    /// If nothing declares the argument as a string, and what it points to only looks like one: the number that the argument is.
    pub number: Option<u64>,
    /// The readable form, if a schema says that it is a mangled name of C++ or Rust, and it is one.
    pub demangled: Option<String>,
}

impl RowString<'_> {
    /// The string; U+FFFD replaces what is not UTF-8.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

impl<'v> RowValue<'v> {
    pub(crate) fn new(form: &Form, value: &'v Value) -> Self {
        match (form, value) {
            (_, Value::Float32(number)) => Self::Float32(*number),
            (Form::Bytes, Value::String(array)) => Self::Bytes {
                bytes: &array.bytes,
                is_cut: array.cut,
            },
            (Form::Address, Value::String(string)) => Self::Address(string.address),
            (_, Value::String(string)) => Self::String(RowString {
                bytes: &string.bytes,
                is_cut: string.cut,
                number: string.guessed.then_some(string.address),
                demangled: form.readable(value),
            }),
            _ => Self::typed(TypedValue::new(form, value), value),
        }
    }

    fn typed(typed: TypedValue<'_>, value: &Value) -> Self {
        match typed {
            TypedValue::Unsigned(number) => Self::Unsigned(number),
            TypedValue::Signed(number) => Self::Signed(number),
            TypedValue::Float(number) => Self::Float64(number),
            TypedValue::Bool(is) => Self::Bool(is),
            TypedValue::Address(address) => Self::Address(address),
            TypedValue::Missing(reason) => Self::Missing(reason),
            TypedValue::String(word) => match value {
                Value::Signed(number) => Self::word(&word, (*number).into()),
                Value::Unsigned(number) => Self::word(&word, (*number).into()),
                _ => Self::Missing(word.into_owned()),
            },
        }
    }

    fn word(word: &str, number: i128) -> Self {
        Self::Word {
            word: word.to_owned(),
            number,
        }
    }
}
