//! The fields of events: one table, which names them for `-F`, templates, JSON and CSV.
//!
//! A text about the process of an event is a variant and an entry with [`ProcessText`]: text, JSON, CSV, templates, `--sort`, `--by`,
//! filters, rows and the Python package go through the entries. Columns of Parquet files are listed with those of the dataset
//! (`report/export/src/dataset_table.rs`), and a test compares the two. Help and documents name the fields, too.

use usdtrec_format::perf::SampleType;

use crate::process::process_text::{CGROUP, CONTAINER, ProcessText};
use crate::session::events::Event;

/// A field of an event.
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
    /// The span that the event ends.
    Span,
    /// Line of source at the address.
    Srcline,
    /// Control group of the process.
    Cgroup,
    /// Container of the process.
    Container,
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug)]
pub enum FieldValues {
    /// Times, ns.
    Time,
    /// Numbers.
    Number,
    /// Texts.
    Text,
    /// Texts about the process.
    ProcessText(&'static ProcessText),
    /// Several columns or members, or none.
    Several,
}

/// A field in the table.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// The field.
    pub field: Field,
    /// perf script's name, if it has the field.
    pub name: &'static str,
    /// Column in CSV.
    pub column: &'static str,
    /// What its values are.
    pub values: FieldValues,
}

const fn spec(field: Field, name: &'static str, values: FieldValues) -> FieldSpec {
    FieldSpec {
        field,
        name,
        column: name,
        values,
    }
}

const fn process_text(field: Field, text: &'static ProcessText) -> FieldSpec {
    spec(field, text.name, FieldValues::ProcessText(text))
}

/// All fields, in the order of CSV's columns.
pub const FIELDS: [FieldSpec; 17] = [
    FieldSpec {
        column: "time_ns",
        ..spec(Field::Time, "time", FieldValues::Time)
    },
    spec(Field::Tod, "tod", FieldValues::Time),
    spec(Field::Cpu, "cpu", FieldValues::Number),
    spec(Field::Pid, "pid", FieldValues::Number),
    spec(Field::Tid, "tid", FieldValues::Number),
    spec(Field::Comm, "comm", FieldValues::Text),
    process_text(Field::Cgroup, &CGROUP),
    process_text(Field::Container, &CONTAINER),
    spec(Field::Event, "event", FieldValues::Text),
    spec(Field::Ip, "ip", FieldValues::Number),
    spec(Field::Sym, "sym", FieldValues::Text),
    spec(Field::Symoff, "symoff", FieldValues::Number),
    spec(Field::Srcline, "srcline", FieldValues::Text),
    spec(Field::Dso, "dso", FieldValues::Text),
    spec(Field::Period, "period", FieldValues::Number),
    spec(Field::Args, "args", FieldValues::Several),
    spec(Field::Span, "span", FieldValues::Several),
];

impl Field {
    /// The field of a name.
    pub fn named(name: &str) -> Option<Self> {
        // What perf calls the arguments of a tracepoint.
        let name = if name == "trace" { "args" } else { name };
        let spec = FIELDS.iter().find(|spec| spec.name == name)?;
        Some(spec.field)
    }

    /// What its values are.
    pub fn values(self) -> FieldValues {
        let spec = FIELDS.iter().find(|spec| spec.field == self);
        spec.map_or(FieldValues::Several, |spec| spec.values)
    }
}

/// All fields that are texts about the process.
const PROCESS_TEXTS: Fields = {
    let (mut bits, mut at) = (0, 0);
    while at < FIELDS.len() {
        if matches!(FIELDS[at].values, FieldValues::ProcessText(_)) {
            bits |= 1 << FIELDS[at].field as u32;
        }
        at += 1;
    }
    Fields(bits)
};

/// The fields that are texts about the process.
pub fn process_texts() -> impl Iterator<Item = (Field, &'static ProcessText)> {
    FIELDS.iter().filter_map(|spec| match spec.values {
        FieldValues::ProcessText(text) => Some((spec.field, text)),
        _ => None,
    })
}

/// The text about the process of this name.
pub fn process_text_named(name: &str) -> Option<&'static ProcessText> {
    process_texts()
        .map(|(_, text)| text)
        .find(|text| text.name == name)
}

/// Several fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub u32);

impl Fields {
    /// What perf script shows of a tracepoint.
    pub const TRACEPOINT: Self = Self::from_slice(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Event,
        Field::Args,
    ]);
    /// What perf script shows of an event of another kind.
    pub const OTHER: Self = Self::from_slice(&[
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
    /// What JSON and CSV have by default.
    pub const DATA: Self = Self::from_slice(&[
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
    pub const PLACE: Self = Self::from_slice(&[Field::Ip, Field::Sym, Field::Symoff, Field::Dso]);

    /// The fields of a list.
    pub const fn from_slice(fields: &[Field]) -> Self {
        let mut bits: u32 = 0;
        let mut at = 0;
        while at < fields.len() {
            bits |= 1 << fields[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    /// These without others.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// These and others.
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The texts about the process that are among them.
    #[inline]
    pub fn process_texts(self) -> impl Iterator<Item = &'static ProcessText> {
        let has_any = self.0 & PROCESS_TEXTS.0 != 0;
        let texts = has_any.then(process_texts).into_iter().flatten();
        texts
            .filter(move |(field, _)| self.has(*field))
            .map(|(_, text)| text)
    }

    /// Whether a field is among them.
    #[must_use]
    #[inline]
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u32 != 0
    }
}

impl Event {
    /// The fields that its samples can have.
    pub fn sampled_fields(&self) -> Fields {
        let unsampled = [
            (SampleType::CPU, Field::Cpu),
            (SampleType::TIME, Field::Time),
            (SampleType::TIME, Field::Tod),
        ];
        let lacking = unsampled
            .iter()
            .filter(|(part, _)| !self.attr.sample_type.has(*part))
            .fold(0, |all, (_, field)| all | Fields::from_slice(&[*field]).0);
        Fields(!lacking)
    }
}
