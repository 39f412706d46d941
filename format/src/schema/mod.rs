//! Schemas: what a probe's arguments are called and what they mean, which notes do not tell.
//!
//! They come from our own files ([`toml`]), from DTrace provider files ([`dtrace`]), from SystemTap's tapsets
//! ([`tapset`]), and from a set that is built in ([`bundled`]). Which one is in force for a probe,
//! [`Schemas::choose`] says.

mod argument;
pub mod bundled;
mod choice;
mod conflict;
mod description;
pub mod dtrace;
mod kind;
mod labels;
mod probe;
mod problem;
pub mod tapset;
pub mod toml;
mod unit;

pub use argument::Argument;
pub use choice::{Choice, Misfit, Schemas};
pub use conflict::Conflict;
pub use description::{Description, Disagreement};
pub use kind::{ArgumentType, Length};
pub use labels::{Labels, Words};
pub use probe::ProbeSchema;
pub use problem::Problem;
pub use unit::Unit;

/// What a text of schemas holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The probes that could be read, in the order of the text.
    pub probes: Vec<ProbeSchema>,
    /// What could not be read, was left out or guessed, in the order of the text.
    pub problems: Vec<Problem>,
}

/// What is known of a text besides its words. Only tapsets, which need not name the provider, ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// The provider of the probes of which the text names none.
    pub provider: Option<&'a str>,
    /// The file's name, without directories.
    pub file: Option<&'a str>,
}

/// The languages of schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// Ours: `.toml`.
    Toml,
    /// A DTrace provider file: `.d`.
    Dtrace,
    /// A SystemTap tapset: `.stp`.
    Tapset,
}

impl Language {
    /// The language that a file's name ends with (`toml`, `d`, `stp`; sources have `.in` or `.base` behind that).
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

    /// Reads a text. Never fails: what cannot be read is among the problems and costs nothing else where its end
    /// can be told.
    #[must_use]
    pub fn parse(self, text: &str) -> Parsed {
        self.parse_with(text, &Hints::default())
    }

    /// As [`Language::parse`], with what is known besides the text.
    #[must_use]
    pub fn parse_with(self, text: &str, hints: &Hints<'_>) -> Parsed {
        match self {
            Self::Toml => toml::parse(text),
            Self::Dtrace => dtrace::parse(text),
            Self::Tapset => tapset::parse_with(text, hints),
        }
    }
}

/// Whether a word can name an argument: letters, digits and underscores, no digit in front.
fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    let first = letters.next();
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// `1 byte`, `2 bytes`.
fn counted(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// A probe's name as notes have it: DTrace's hyphen is two underscores.
fn note_name(name: &str) -> String {
    name.replace('-', "__")
}
