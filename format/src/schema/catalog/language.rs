//! Languages of schema files.

use crate::schema::{Hints, Parsed, dtrace, tapset, toml};

/// Languages of schema files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// TOML: `.toml`.
    Toml,
    /// A DTrace provider file: `.d`.
    Dtrace,
    /// A SystemTap tapset: `.stp`.
    Tapset,
}

impl Language {
    /// The language of a file name's extension (`toml`, `d`, `stp`, also with `.in` or `.base` after it).
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let source = [".in", ".base"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let name = source.unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "toml" => Some(Self::Toml),
            "d" => Some(Self::Dtrace),
            "stp" => Some(Self::Tapset),
            _ => None,
        }
    }

    /// Parses a text. Never fails: invalid parts are reported as problems, and do not affect others if their end
    /// can be found.
    #[must_use]
    pub fn parse(self, text: &str) -> Parsed {
        self.parse_with(text, &Hints::default())
    }

    /// As [`Language::parse`], with additional information.
    #[must_use]
    pub fn parse_with(self, text: &str, hints: &Hints<'_>) -> Parsed {
        match self {
            Self::Toml => toml::parse(text),
            Self::Dtrace => dtrace::parse(text),
            Self::Tapset => tapset::parse_with(text, hints),
        }
    }
}
