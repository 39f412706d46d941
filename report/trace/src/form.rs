//! What the values of an argument are, by its type and unit, where that decides how they are shown.
//!
//! The form of a value is determined once per argument, and is the same in text, CSV and JSON, except that JSON has
//! true, false, null and numbers; `report/view/src/text/form.rs` has the table of all forms. JSON loses nothing: values
//! that are missing, cut or not UTF-8 are marked in members next to the arguments.

use usdtrec_format::schema::{Argument, ArgumentType, Labels, Unit, Words};
use usdtrec_format::{Missing, Value};

use crate::symbols::demangle::demangle_value;

/// What the values of an argument are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As numbers.
    #[default]
    Plain,
    /// As `true` and `false`.
    Bool,
    /// As a character.
    Char,
    /// As an address, in hexadecimal.
    Address,
    /// As bytes where they are in the sample, else as their address.
    Bytes,
    /// Addresses of a string that is not in the sample.
    StringAddress,
    /// Addresses of a mangled name that is not in the sample.
    Mangled,
    /// As the name of a number.
    Enum(Words),
    /// As the names of bits.
    Flags(Words),
    /// As a time, of so many nanoseconds each.
    Time(u64),
    /// As an amount of memory, of so many bytes each.
    Memory(u64),
}

impl Form {
    /// The form of an argument's values.
    pub fn new(argument: &Argument) -> Self {
        match (&argument.labels, &argument.kind, &argument.unit) {
            (Some(Labels::Enum(words)), ..) => Self::Enum(words.clone()),
            (Some(Labels::Flags(words)), ..) => Self::Flags(words.clone()),
            (None, Some(ArgumentType::Bool), _) => Self::Bool,
            (None, Some(ArgumentType::Char), _) => Self::Char,
            (None, Some(ArgumentType::Pointer), _) => Self::Address,
            (None, Some(ArgumentType::Bytes(_)), _) => Self::Bytes,
            (None, Some(ArgumentType::String(_)), Some(Unit::Mangled)) => Self::Mangled,
            (None, Some(ArgumentType::String(_)), _) => Self::StringAddress,
            (None, _, Some(unit)) => unit
                .nanoseconds()
                .map(Self::Time)
                .or_else(|| unit.bytes().map(Self::Memory))
                .unwrap_or_default(),
            _ => Self::Plain,
        }
    }

    /// The form of an argument's values where numbers with a unit are plain ones.
    #[must_use]
    pub fn plain(self) -> Self {
        match self {
            Self::Time(_) | Self::Memory(_) => Self::Plain,
            form => form,
        }
    }

    /// Whether the values are addresses.
    pub const fn is_address(&self) -> bool {
        matches!(self, Self::Address | Self::Bytes) || self.is_string()
    }

    /// Whether the values are strings, or addresses of some.
    pub const fn is_string(&self) -> bool {
        matches!(self, Self::StringAddress | Self::Mangled)
    }

    /// The readable form of a value, if that is a mangled name which was captured as a whole.
    pub fn readable(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(string) if !string.cut => self.readable_string(&string.bytes),
            _ => None,
        }
    }

    /// The readable form of a string, if that is a mangled name.
    pub fn readable_string(&self, string: &[u8]) -> Option<String> {
        match self {
            Self::Mangled => demangle_value(string),
            _ => None,
        }
    }

    /// Why what a value points to is not in the sample, in words.
    pub fn missing(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (_, Value::Missing(Missing::Absent)) => None,
            (_, Value::Missing(missing)) => Some(missing.to_string()),
            (Self::StringAddress | Self::Mangled, Value::Unsigned(0)) => {
                Some("null pointer".to_owned())
            }
            (Self::StringAddress | Self::Mangled, Value::Unsigned(at)) => {
                Some(format!("string at {at:#x} not captured"))
            }
            _ => None,
        }
    }
}
