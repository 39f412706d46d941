//! Fields of a line: perf script's names.

use std::str::FromStr;

use usdtrec_format::perf::SampleType;

use crate::session::Event;

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Name of the thread.
    Comm,
    /// Thread.
    Tid,
    /// Process.
    Pid,
    /// CPU.
    Cpu,
    /// Time of the trace's clock, or since another line.
    Time,
    /// Time of day.
    Tod,
    /// Period of the event.
    Period,
    /// Name of the event.
    Event,
    /// Arguments, with the address in front as perf has it for tracepoints.
    Args,
    /// Address.
    Ip,
    /// Function at the address.
    Sym,
    /// Distance from the function's start.
    Symoff,
    /// File at the address.
    Dso,
}

/// Names of the fields; `trace` is what perf calls the arguments of a tracepoint.
const NAMES: [(&str, Field); 14] = [
    ("comm", Field::Comm),
    ("tid", Field::Tid),
    ("pid", Field::Pid),
    ("cpu", Field::Cpu),
    ("time", Field::Time),
    ("tod", Field::Tod),
    ("period", Field::Period),
    ("event", Field::Event),
    ("args", Field::Args),
    ("ip", Field::Ip),
    ("sym", Field::Sym),
    ("symoff", Field::Symoff),
    ("dso", Field::Dso),
    ("trace", Field::Args),
];

/// Several fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(u16);

impl Fields {
    /// What perf script shows of a tracepoint.
    pub const TRACEPOINT: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Event,
        Field::Args,
    ]);
    /// What perf script shows of an event of another kind.
    pub const OTHER: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Period,
        Field::Event,
        Field::Ip,
        Field::Sym,
        Field::Symoff,
        Field::Dso,
    ]);
    /// What JSON and CSV have if nothing is said.
    pub const DATA: Self = Self::of(&[
        Field::Time,
        Field::Cpu,
        Field::Pid,
        Field::Tid,
        Field::Comm,
        Field::Event,
        Field::Ip,
        Field::Args,
    ]);

    /// What perf script shows besides where callers are known.
    const PLACE: Self = Self::of(&[Field::Ip, Field::Sym, Field::Symoff, Field::Dso]);

    const fn of(fields: &[Field]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < fields.len() {
            bits |= 1 << fields[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// These without others.
    pub(super) const fn without(self, others: &[Field]) -> Self {
        Self(self.0 & !Self::of(others).0)
    }

    /// Whether a field is among them.
    #[must_use]
    #[inline]
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u16 != 0
    }
}

impl Event {
    /// The fields that text shows of it: those asked for, else perf's, without what its samples do not tell.
    pub(super) fn shown(&self, choice: &FieldChoice) -> Fields {
        let default = if self.probe.is_some() || self.is_tracepoint() {
            Fields::TRACEPOINT
        } else {
            Fields::OTHER
        };
        let places = if self.has_chain() { Fields::PLACE.0 } else { 0 };
        let chosen = choice.apply(Fields(default.0 | places));
        Fields(chosen.0 & self.told().0)
    }

    /// The fields that its samples can tell.
    pub(super) fn told(&self) -> Fields {
        let unsampled = [
            (SampleType::CPU, Field::Cpu),
            (SampleType::TIME, Field::Time),
            (SampleType::TIME, Field::Tod),
        ];
        let untold = unsampled
            .iter()
            .filter(|(part, _)| !self.attr.sample_type.has(*part))
            .fold(0, |all, (_, field)| all | Fields::of(&[*field]).0);
        Fields(!untold)
    }
}

/// Which fields are asked for, as `-F` has it: a list, or changes of what is shown by default (`+ip,-cpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldChoice {
    only: Option<Fields>,
    added: Fields,
    removed: Fields,
}

impl FieldChoice {
    /// The fields, where `default` is what is shown if nothing is said.
    #[must_use]
    pub fn apply(&self, default: Fields) -> Fields {
        let chosen = self.only.unwrap_or(default);
        Fields((chosen.0 | self.added.0) & !self.removed.0)
    }

    /// This with one more field.
    #[must_use]
    pub const fn and(mut self, field: Field) -> Self {
        self.added.0 |= Fields::of(&[field]).0;
        self
    }
}

impl FromStr for FieldChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut choice = Self::default();
        for word in text.split(',').map(str::trim) {
            let (set, name) = if let Some(name) = word.strip_prefix('+') {
                (&mut choice.added, name)
            } else if let Some(name) = word.strip_prefix('-') {
                (&mut choice.removed, name)
            } else {
                (choice.only.get_or_insert_default(), word)
            };
            let field = NAMES.iter().find(|(known, _)| *known == name);
            let (_, field) = field.ok_or_else(|| {
                let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
                format!("no field {name:?}; there are: {}", known.join(","))
            })?;
            *set = Fields(set.0 | Fields::of(&[*field]).0);
        }
        if choice.only.is_some() && choice.added.0 | choice.removed.0 != 0 {
            return Err("fields with + or - in front cannot be mixed with others".to_owned());
        }
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_and_signs_change() {
        let only: FieldChoice = "comm,ip,trace".parse().unwrap();
        let expected = Fields::of(&[Field::Comm, Field::Ip, Field::Args]);
        assert_eq!(only.apply(Fields::OTHER), expected);
        let changed: FieldChoice = "+pid,-time,-args".parse().unwrap();
        let expected = Fields::of(&[
            Field::Comm,
            Field::Tid,
            Field::Pid,
            Field::Cpu,
            Field::Event,
        ]);
        assert_eq!(changed.apply(Fields::TRACEPOINT), expected);
        let more: FieldChoice = "comm".parse().unwrap();
        let expected = Fields::of(&[Field::Comm, Field::Tod]);
        assert_eq!(more.and(Field::Tod).apply(Fields::DATA), expected);
        assert_eq!(FieldChoice::default().apply(Fields::DATA), Fields::DATA);
    }

    #[test]
    fn unknown_and_mixed_fields_are_refused() {
        let error = "comm,foo".parse::<FieldChoice>().unwrap_err();
        assert!(
            error.contains("\"foo\"") && error.contains("symoff"),
            "{error}"
        );
        assert!("comm,+pid".parse::<FieldChoice>().is_err());
        assert!("".parse::<FieldChoice>().is_err());
    }
}
