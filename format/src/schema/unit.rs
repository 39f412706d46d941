//! Units of arguments.

use std::fmt;

/// Unit of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// `ns`
    Nanoseconds,
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `bytes`
    Bytes,
    /// `KiB`
    Kibibytes,
    /// `mangled`: the string is a mangled C++ or Rust name, and is shown demangled.
    Mangled,
    /// Any other word (`pages`, `rows`); shown, not converted.
    Other(String),
}

impl Unit {
    const NAMES: [(&'static str, Self); 7] = [
        ("ns", Self::Nanoseconds),
        ("us", Self::Microseconds),
        ("ms", Self::Milliseconds),
        ("s", Self::Seconds),
        ("bytes", Self::Bytes),
        ("KiB", Self::Kibibytes),
        ("mangled", Self::Mangled),
    ];

    /// The unit of this name.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Self {
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Other(name.to_owned()), |(_, unit)| unit.clone())
    }

    /// Name of the unit.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => Self::NAMES
                .iter()
                .find(|(_, unit)| unit == known)
                .map_or("", |(name, _)| name),
        }
    }

    /// Nanoseconds per unit; `None` if it is not a unit of time.
    #[must_use]
    pub const fn nanoseconds(&self) -> Option<u64> {
        match self {
            Self::Nanoseconds => Some(1),
            Self::Microseconds => Some(1_000),
            Self::Milliseconds => Some(1_000_000),
            Self::Seconds => Some(1_000_000_000),
            _ => None,
        }
    }

    /// Bytes per unit; `None` if it is not a unit of memory.
    #[must_use]
    pub const fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes => Some(1),
            Self::Kibibytes => Some(1024),
            _ => None,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
