//! An event of the input.

use std::borrow::Cow;

use super::bad_line::BadLine;

/// Maximum number of arguments of an event.
pub(super) const MAX_ARGUMENTS: usize = 100;
/// Maximum length of a name, bytes.
pub(super) const MAX_NAME: usize = 256;

/// An event of the input. What the input does not say is `None`.
#[derive(Debug, PartialEq)]
pub(super) struct ImportedEvent<'a> {
    /// ns.
    pub(super) time: u64,
    pub(super) cpu: Option<u32>,
    pub(super) probe: ProbeName<'a>,
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) comm: Option<Cow<'a, [u8]>>,
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
    pub(super) name: Cow<'a, str>,
    pub(super) value: ImportedValue<'a>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ImportedValue<'a> {
    /// A decimal integer; its text is the shortest one of the number.
    Integer(i128),
    /// An integer of at most six digits, as `%g` prints floats without a fraction, too.
    Whole(i32),
    /// An integer in hexadecimal.
    Hex(u64),
    /// An integer of an enumeration.
    Labelled { number: i128, label: String },
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Anything else.
    Text(Cow<'a, [u8]>),
}

impl<'a> ProbeName<'a> {
    /// `sdt_PROVIDER:NAME`, `PROVIDER:NAME`, or a name alone.
    pub(super) fn of_event(text: &'a str) -> Option<Self> {
        const NO_PROVIDER: &str = "ctf";
        let (provider, name) = text.split_once(':').unwrap_or((NO_PROVIDER, text));
        let sdt = provider.strip_prefix("sdt_");
        let found = Self {
            file: "",
            provider: sdt.unwrap_or(provider),
            name,
            is_sdt: sdt.is_some(),
        };
        found.is_usable().then_some(found)
    }

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

impl<'a> ImportedValue<'a> {
    /// As written.
    pub(super) fn text(&self) -> Cow<'_, [u8]> {
        let owned = |text: String| Cow::Owned(text.into_bytes());
        match self {
            Self::Integer(number) => owned(number.to_string()),
            Self::Whole(number) => owned(number.to_string()),
            Self::Hex(number) => owned(format!("{number:#x}")),
            Self::Labelled { label, .. } => Cow::Borrowed(label.as_bytes()),
            Self::Float(number) => owned(number.to_string()),
            Self::Bool(is) => owned(is.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }

    /// The integer, if it is one.
    pub(super) fn integer(&self) -> Option<i128> {
        match *self {
            Self::Integer(number) | Self::Labelled { number, .. } => Some(number),
            Self::Whole(number) => Some(number.into()),
            Self::Hex(number) => Some(number.into()),
            Self::Float(_) | Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

/// Appends an argument of an event, whose name is a new one; `expected` says that.
pub(super) fn add_argument<'a>(
    arguments: &mut Vec<ImportedArgument<'a>>,
    argument: ImportedArgument<'a>,
    expected: &'static str,
) -> Result<(), BadLine> {
    if arguments.iter().any(|known| known.name == argument.name) {
        return Err(BadLine::field(expected, &argument.name));
    }
    arguments.push(argument);
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_by_the_names_of_events() {
        let event = |text| ProbeName::of_event(text).map(|probe| (probe.event(), probe.is_sdt));
        for (text, expected, is_sdt) in [
            ("app:request__start", "app:request__start", false),
            ("sdt_app:done", "sdt_app:done", true),
            ("a:b:c", "a:b:c", false),
            ("sched_switch", "ctf:sched_switch", false),
        ] {
            assert_eq!(event(text), Some((expected.to_owned(), is_sdt)));
        }
        for wrong in ["", ":", "a:", ":b", "sdt_:b"] {
            assert_eq!(event(wrong), None, "{wrong:?}");
        }
    }
}
