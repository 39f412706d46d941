//! An event of the input.

use std::borrow::Cow;

/// Maximum number of arguments of an event.
pub(super) const MAX_ARGUMENTS: usize = 100;
/// Maximum length of a name, bytes.
pub(super) const MAX_NAME: usize = 256;

/// An event of the input.
#[derive(Debug, PartialEq)]
pub(super) struct ImportedEvent<'a> {
    /// ns.
    pub(super) time: u64,
    pub(super) cpu: u32,
    pub(super) probe: ProbeName<'a>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) comm: Cow<'a, str>,
    pub(super) arguments: Vec<ImportedArgument<'a>>,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProbeName<'a> {
    /// The program, if the name has it.
    pub(super) file: &'a str,
    pub(super) provider: &'a str,
    pub(super) name: &'a str,
    /// Whether it is an SDT probe.
    pub(super) is_sdt: bool,
}

/// An argument.
#[derive(Debug, PartialEq)]
pub(super) struct ImportedArgument<'a> {
    pub(super) name: &'a str,
    pub(super) value: ImportedValue<'a>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ImportedValue<'a> {
    /// A decimal integer; its text is the shortest one of the number.
    Integer(i128),
    /// A float.
    Float(f64),
    /// Anything else.
    String(Cow<'a, str>),
}

impl ProbeName<'_> {
    /// Whether provider and name are there and short enough.
    pub(super) fn is_usable(&self) -> bool {
        let is_short = |part: &str| (1..=MAX_NAME).contains(&part.len());
        is_short(self.provider) && is_short(self.name)
    }

    /// The name of its event.
    pub(super) fn event(&self) -> String {
        let prefix = if self.is_sdt { "sdt_" } else { "" };
        format!("{prefix}{}:{}", self.provider, self.name)
    }
}

impl ImportedValue<'_> {
    /// As written.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Integer(number) => number.to_string().into(),
            Self::Float(number) => number.to_string().into(),
            Self::String(text) => Cow::Borrowed(text),
        }
    }
}

/// Whether an argument can have this name.
pub(super) fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(is_inner) && name.len() <= MAX_NAME
}

/// Whether 64 bits can have this value.
pub(super) fn fits(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}

/// A line.
#[derive(Debug)]
pub(super) enum ParsedLine<'a> {
    /// An event.
    Event(ImportedEvent<'a>),
    /// So many events were lost.
    Lost(u64),
    /// A map, histogram or statistics.
    Aggregate,
    /// Neither an event nor an error.
    Other,
}

/// Why a line is none that can be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadLine {
    #[error("expected JSON: {0}")]
    Json(String),
    #[error("expected at most 1 MiB")]
    TooLong,
    #[error("expected a newline at the end of the printf, as separate events have")]
    NoEnd,
    #[error("expected {what}, found {found:?}")]
    Field { what: &'static str, found: String },
    #[error("expected at most 100 arguments")]
    TooManyArguments,
    #[error("expected at most 4096 probes with different arguments")]
    TooManyShapes,
}

impl BadLine {
    /// Something else was found; long texts are cut.
    pub(super) fn field(what: &'static str, found: &str) -> Self {
        const MAX_CHARACTERS: usize = 60;
        Self::Field {
            what,
            found: found.chars().take(MAX_CHARACTERS).collect(),
        }
    }
}
