//! Types of arguments, and their names.

use std::fmt;
use std::str::FromStr;

/// Type of an argument.
///
/// | text | |
/// |---|---|
/// | `s8` `s16` `s32` `s64`, `u8` `u16` `u32` `u64` | integers |
/// | `f32` `f64` | floats |
/// | `bool` | an integer that is 0 or not |
/// | `char` | a character, as its code |
/// | `ptr` | an address |
/// | `str` | the address of a NUL-terminated string |
/// | `str(len)`, `str(16)` | the address of a string whose length in bytes is another argument, or fixed |
/// | `bytes(len)`, `bytes(16)` | the address of bytes, whose number is another argument, or fixed |
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentType {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Size, bytes.
        bytes: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// A float of 4 bytes.
    Float32,
    /// A float of 8 bytes.
    Float64,
    /// False if 0, else true.
    Bool,
    /// A character.
    Char,
    /// An address.
    Pointer,
    /// The address of a string; NUL-terminated if it has no length.
    String(Option<Length>),
    /// The address of bytes.
    Bytes(Length),
}

/// Length of a string or of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// The value of the argument of this name, bytes.
    Argument(String),
    /// A fixed number of bytes.
    Fixed(u32),
}

static PLAIN: [(&str, ArgumentType); 14] = [
    ("s8", integer(1, true)),
    ("s16", integer(2, true)),
    ("s32", integer(4, true)),
    ("s64", integer(8, true)),
    ("u8", integer(1, false)),
    ("u16", integer(2, false)),
    ("u32", integer(4, false)),
    ("u64", integer(8, false)),
    ("f32", ArgumentType::Float32),
    ("f64", ArgumentType::Float64),
    ("bool", ArgumentType::Bool),
    ("char", ArgumentType::Char),
    ("ptr", ArgumentType::Pointer),
    ("str", ArgumentType::String(None)),
];

const fn integer(bytes: u8, signed: bool) -> ArgumentType {
    ArgumentType::Integer { bytes, signed }
}

impl ArgumentType {
    /// An integer of 1, 2, 4 or 8 bytes.
    #[must_use]
    pub const fn integer(bytes: u8, signed: bool) -> Self {
        integer(bytes, signed)
    }

    /// Size of a value in bytes; `None` if the type does not determine it: addresses have the program's pointer size, booleans
    /// and characters have any size.
    #[must_use]
    pub const fn bytes(&self) -> Option<u8> {
        match self {
            Self::Integer { bytes, .. } => Some(*bytes),
            Self::Float32 => Some(4),
            Self::Float64 => Some(8),
            _ => None,
        }
    }

    /// Whether it is a float.
    #[must_use]
    pub(crate) const fn is_float(&self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// Whether the value is an address.
    #[must_use]
    pub const fn is_address(&self) -> bool {
        matches!(self, Self::Pointer | Self::String(_) | Self::Bytes(_))
    }

    /// Name of the argument that is the length.
    #[must_use]
    pub fn length_argument(&self) -> Option<&str> {
        match self {
            Self::String(Some(Length::Argument(name))) | Self::Bytes(Length::Argument(name)) => {
                Some(name)
            }
            _ => None,
        }
    }
}

/// Error of parsing the type of an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentTypeError {
    /// No type has this name.
    #[error(
        "unknown type {0:?}: expected s8 to s64, u8 to u64, f32, f64, bool, char, ptr, str, \
         str(LENGTH) or bytes(LENGTH)"
    )]
    Type(String),
    /// A length is neither a number nor the name of an argument.
    #[error("a length is the name of an argument or a number of bytes, found {0:?}")]
    Length(String),
}

impl FromStr for ArgumentType {
    type Err = ArgumentTypeError;

    fn from_str(text: &str) -> Result<Self, ArgumentTypeError> {
        let text = text.trim();
        if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Ok(plain.clone());
        }
        let sized = text.strip_suffix(')').and_then(|text| text.split_once('('));
        match sized {
            Some(("str", length)) => Ok(Self::String(Some(length.parse()?))),
            Some(("bytes", length)) => Ok(Self::Bytes(length.parse()?)),
            _ => Err(ArgumentTypeError::Type(text.to_owned())),
        }
    }
}

impl FromStr for Length {
    type Err = ArgumentTypeError;

    fn from_str(text: &str) -> Result<Self, ArgumentTypeError> {
        let text = text.trim();
        match text.parse() {
            Ok(bytes) => Ok(Self::Fixed(bytes)),
            Err(_) if is_name(text) => Ok(Self::Argument(text.to_owned())),
            Err(_) => Err(ArgumentTypeError::Length(text.to_owned())),
        }
    }
}

impl fmt::Display for ArgumentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(Some(length)) => write!(f, "str({length})"),
            Self::Bytes(length) => write!(f, "bytes({length})"),
            plain => {
                let known = PLAIN.iter().find(|(_, kind)| kind == plain);
                f.write_str(known.map_or("", |(name, _)| name))
            }
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::Fixed(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// Whether a word is a valid argument name: letters, digits and underscores, not starting with a digit.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_back() {
        let sized = ["str(len)", "str(16)", "bytes(size)", "bytes(4)"];
        let plain = PLAIN.iter().map(|(name, _)| *name);
        for text in plain.chain(sized) {
            let kind: ArgumentType = text.parse().unwrap();
            assert_eq!(kind.to_string(), text);
        }
        for wrong in [
            "", "int", "u24", "str()", "bytes", "str(a b)", "str(1", "u8)",
        ] {
            assert!(wrong.parse::<ArgumentType>().is_err(), "{wrong}");
        }
    }
}
