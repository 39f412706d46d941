//! The fields of events: one table, which names them for `-F`, templates, JSON and CSV.
//!
//! A field about the process of an event, as its control group, is a variant and an entry with [`ProcessField`]: text, JSON, CSV, templates, `--sort`, `--by`,
//! filters, rows, Parquet files and the Python package go through the entries. Help and documents name the fields, too.

use usdtrec_format::perf::SampleType;

use crate::process::process_field::{
    BUILD_ID, CGROUP, CONTAINER, EXE, ProcessField, SPAN_ID, TRACE_ID, UID, UNIT,
};
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
    /// Unit of the process.
    Unit,
    /// Program of the process.
    Exe,
    /// User of the process.
    Uid,
    /// Trace of the request.
    TraceId,
    /// Span of the request.
    SpanId,
    /// Build of the file with the probe.
    BuildId,
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug)]
pub enum FieldValues {
    /// Times, ns.
    Time,
    /// Numbers.
    Number,
    /// Strings.
    String,
    /// Fields about the process.
    Process(&'static ProcessField),
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

const fn of_process(field: Field, of_process: &'static ProcessField) -> FieldSpec {
    spec(field, of_process.name, FieldValues::Process(of_process))
}

/// All fields, in the order of CSV's columns.
pub const FIELDS: [FieldSpec; 23] = [
    FieldSpec {
        column: "time_ns",
        ..spec(Field::Time, "time", FieldValues::Time)
    },
    spec(Field::Tod, "tod", FieldValues::Time),
    spec(Field::Cpu, "cpu", FieldValues::Number),
    spec(Field::Pid, "pid", FieldValues::Number),
    spec(Field::Tid, "tid", FieldValues::Number),
    spec(Field::Comm, "comm", FieldValues::String),
    of_process(Field::Cgroup, &CGROUP),
    of_process(Field::Container, &CONTAINER),
    of_process(Field::Unit, &UNIT),
    of_process(Field::Exe, &EXE),
    of_process(Field::Uid, &UID),
    of_process(Field::TraceId, &TRACE_ID),
    of_process(Field::SpanId, &SPAN_ID),
    of_process(Field::BuildId, &BUILD_ID),
    spec(Field::Event, "event", FieldValues::String),
    spec(Field::Ip, "ip", FieldValues::Number),
    spec(Field::Sym, "sym", FieldValues::String),
    spec(Field::Symoff, "symoff", FieldValues::Number),
    spec(Field::Srcline, "srcline", FieldValues::String),
    spec(Field::Dso, "dso", FieldValues::String),
    spec(Field::Period, "period", FieldValues::Number),
    spec(Field::Args, "args", FieldValues::Several),
    spec(Field::Span, "span", FieldValues::Several),
];

/// Name of a span, in JSON and CSV; in templates how long it lasted.
pub const SPAN: &str = "span";
/// Duration of a span, ns.
pub const SPAN_NS: &str = "span_ns";
/// Name of a span in templates.
pub const SPAN_NAME: &str = "span_name";
/// What became of a span.
pub const FATE: &str = "fate";

impl Field {
    /// The field of a name.
    pub fn named(name: &str) -> Option<Self> {
        // What perf calls the arguments of a tracepoint.
        let name = if name == "trace" { "args" } else { name };
        let name = canonical(name);
        let spec = FIELDS.iter().find(|spec| spec.name == name)?;
        Some(spec.field)
    }

    /// What its values are.
    pub fn values(self) -> FieldValues {
        let spec = FIELDS.iter().find(|spec| spec.field == self);
        spec.map_or(FieldValues::Several, |spec| spec.values)
    }
}

/// All fields about the process.
const PROCESS_FIELDS: Fields = {
    let (mut bits, mut at) = (0, 0);
    while at < FIELDS.len() {
        if matches!(FIELDS[at].values, FieldValues::Process(_)) {
            bits |= 1 << FIELDS[at].field as u32;
        }
        at += 1;
    }
    Fields(bits)
};

/// How many fields there are about the process.
pub const PROCESS_FIELD_COUNT: usize = PROCESS_FIELDS.0.count_ones() as usize;

/// The fields about the process.
pub fn process_fields() -> impl Iterator<Item = (Field, &'static ProcessField)> {
    FIELDS.iter().filter_map(|spec| match spec.values {
        FieldValues::Process(of_process) => Some((spec.field, of_process)),
        _ => None,
    })
}

/// The names of the fields about the process, in the order of CSV's columns.
#[must_use]
pub fn process_field_names() -> Vec<&'static str> {
    process_fields().map(|(_, field)| field.name).collect()
}

/// The same with what each of them is.
#[must_use]
pub fn process_field_help() -> Vec<String> {
    let described = process_fields().map(|(_, field)| format!("{} ({})", field.name, field.help));
    described.collect()
}

/// The name in JSON, where options may have a hyphen.
fn canonical(name: &str) -> &str {
    if name == "build-id" {
        BUILD_ID.name
    } else {
        name
    }
}

/// The field about the process of this name.
pub fn process_field_named(name: &str) -> Option<&'static ProcessField> {
    let name = canonical(name);
    process_fields()
        .map(|(_, field)| field)
        .find(|field| field.name == name)
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

    /// The fields about the process that are among them.
    #[inline]
    pub fn process_fields(self) -> impl Iterator<Item = &'static ProcessField> {
        let has_any = self.0 & PROCESS_FIELDS.0 != 0;
        let fields = has_any.then(process_fields).into_iter().flatten();
        fields
            .filter(move |(field, _)| self.has(*field))
            .map(|(_, of_process)| of_process)
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
