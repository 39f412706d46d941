//! Languages of schema files.

use crate::schema::{Parsed, dtrace, toml};

/// Languages of schema files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// TOML: `.toml`.
    Toml,
    /// A DTrace provider file: `.d`.
    Dtrace,
}

impl Language {
    /// The language of a file name's extension (`toml`, `d`, also with `.in` or `.base` after it).
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let source = [".in", ".base"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let name = source.unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "toml" => Some(Self::Toml),
            "d" => Some(Self::Dtrace),
            _ => None,
        }
    }

    /// Parses a text. Never fails: invalid parts are reported as problems, and do not affect others if their end
    /// can be found.
    #[must_use]
    pub fn parse(self, text: &str) -> Parsed {
        match self {
            Self::Toml => toml::parse(text),
            Self::Dtrace => dtrace::parse(text),
        }
    }
}
