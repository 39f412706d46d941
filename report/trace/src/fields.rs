//! The fields of events and of spans: a table of each, which names, describes and gets them for `-F`, templates, JSON, CSV, help and documents.
//!
//! A field of an event is a variant and an entry, which says how its value is got from a [`FieldSource`]. One about the process, as its control group, has a
//! [`ProcessField`]: `--sort`, `--by`, filters, rows, Parquet files and the Python package go through these entries, too.

use std::borrow::Cow;

use usdtrec_format::TimePart;
use usdtrec_format::perf::SampleType;

use crate::field_value::{FieldSource, FieldValue, GetField};
use crate::process::process_field::{
    BLOCKED, BUILD_ID, CGROUP, CONTAINER, EXE, IOWAIT, NOT_KNOWN, PARENT, PPID, ProcessField,
    RUNNABLE, SERVICE, SPAN_ID, TRACE_ID, UID, UNIT,
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
    /// Number of its parent.
    Ppid,
    /// Name of its parent.
    Parent,
    /// Name of its service.
    Service,
    /// Trace of the request.
    TraceId,
    /// Span of the request.
    SpanId,
    /// How long the thread has waited for a CPU.
    Runnable,
    /// How long it has waited for disks.
    Iowait,
    /// How long it has waited for something else.
    Blocked,
    /// Build of the file with the probe.
    BuildId,
}

/// What the values of a field are, and how they are got from a hit.
#[derive(Clone, Copy, Debug)]
pub enum FieldValues {
    /// Times, ns.
    Time(GetField),
    /// Numbers.
    Number(GetField),
    /// Strings.
    String(GetField),
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
    /// Type of its member in JSON.
    pub json: &'static str,
    /// What it is, in help.
    pub help: &'static str,
    /// What it is, in documents.
    pub meaning: &'static str,
    /// When the member is null, or absent although it is requested: what the field needs is not there.
    pub lacking: &'static str,
}

const fn spec(field: Field, name: &'static str, values: FieldValues) -> FieldSpec {
    let is_number = match values {
        FieldValues::Time(_) | FieldValues::Number(_) => true,
        FieldValues::Process(of_process) => of_process.is_number,
        FieldValues::String(_) | FieldValues::Several => false,
    };
    FieldSpec {
        field,
        name,
        column: name,
        values,
        json: if is_number { "integer" } else { "string" },
        help: "",
        meaning: "",
        lacking: "",
    }
}

impl FieldSpec {
    /// The value of a hit; else what text shows in its place.
    #[inline]
    pub fn value<'v>(
        &self,
        hit: &'v mut FieldSource<'_, '_>,
    ) -> Result<FieldValue<'v>, &'static str> {
        match self.values {
            FieldValues::Time(get) | FieldValues::Number(get) | FieldValues::String(get) => {
                get(hit)
            }
            FieldValues::Process(field) => hit.process(field),
            FieldValues::Several => Err(""),
        }
    }

    const fn help(mut self, help: &'static str) -> Self {
        (self.help, self.meaning) = (help, help);
        self
    }

    /// Type and documentation where they are not those of other formats.
    const fn in_json(mut self, json: &'static str, meaning: &'static str) -> Self {
        (self.json, self.meaning) = (json, meaning);
        self
    }

    const fn lacking(mut self, lacking: &'static str) -> Self {
        self.lacking = lacking;
        self
    }
}

const fn of_process(field: Field, of_process: &'static ProcessField) -> FieldSpec {
    FieldSpec {
        help: of_process.help,
        meaning: of_process.meaning,
        lacking: of_process.lacking,
        ..spec(field, of_process.name, FieldValues::Process(of_process))
    }
}

/// All fields, in the order of CSV's columns.
pub const FIELDS: [FieldSpec; 29] = [
    FieldSpec {
        column: "time_ns",
        ..spec(
            Field::Time,
            "time",
            FieldValues::Time(|hit| hit.time().map(FieldValue::Time)),
        )
        .help("when, by the trace's clock")
        .lacking("null if the event's samples have no time")
    },
    spec(
        Field::Tod,
        "tod",
        FieldValues::Time(|hit| hit.time().map(FieldValue::TimeOfDay)),
    )
    .help("time of day")
    .in_json("string", "time of day in UTC (RFC 3339)")
    .lacking("null where `time_ns` is"),
    spec(Field::Cpu, "cpu", FieldValues::Number(|hit| hit.cpu()))
        .help("CPU of the hit")
        .lacking("null if the event's samples have none"),
    spec(
        Field::Pid,
        "pid",
        FieldValues::Number(|hit| Ok(FieldValue::Signed(hit.sample().pid.into()))),
    )
    .help("process"),
    spec(
        Field::Tid,
        "tid",
        FieldValues::Number(|hit| Ok(FieldValue::Signed(hit.sample().tid.into()))),
    )
    .help("thread"),
    spec(
        Field::Comm,
        "comm",
        FieldValues::String(|hit| Ok(hit.comm())),
    )
    .help("name of the thread")
    .lacking("never: `:TID` if the trace has no name"),
    of_process(Field::Cgroup, &CGROUP),
    of_process(Field::Container, &CONTAINER),
    of_process(Field::Unit, &UNIT),
    of_process(Field::Exe, &EXE),
    of_process(Field::Uid, &UID),
    of_process(Field::Ppid, &PPID),
    of_process(Field::Parent, &PARENT),
    of_process(Field::Service, &SERVICE),
    of_process(Field::TraceId, &TRACE_ID),
    of_process(Field::SpanId, &SPAN_ID),
    of_process(Field::Runnable, &RUNNABLE),
    of_process(Field::Iowait, &IOWAIT),
    of_process(Field::Blocked, &BLOCKED),
    of_process(Field::BuildId, &BUILD_ID),
    spec(
        Field::Event,
        "event",
        FieldValues::String(|hit| hit.event_name()),
    )
    .help("`sdt_PROVIDER:NAME`"),
    spec(
        Field::Ip,
        "ip",
        FieldValues::Number(|hit| Ok(FieldValue::Address(hit.sample().ip))),
    )
    .help("address")
    .in_json("string", "address in hexadecimal, with `0x`"),
    spec(
        Field::Sym,
        "sym",
        FieldValues::String(|hit| {
            hit.symbol()
                .map(|symbol| FieldValue::Text(Cow::Borrowed(&symbol.name)))
        }),
    )
    .help("function at the address")
    .lacking(NOT_KNOWN),
    spec(
        Field::Symoff,
        "symoff",
        FieldValues::Number(|hit| hit.symbol().map(|symbol| FieldValue::Offset(symbol.offset))),
    )
    .help("bytes from the function's start")
    .lacking("absent without a function"),
    spec(
        Field::Srcline,
        "srcline",
        FieldValues::String(|hit| hit.source()),
    )
    .help("source file and line")
    .in_json(
        "string",
        "`FILE:LINE`, with the path that the compiler wrote",
    )
    .lacking(NOT_KNOWN),
    spec(Field::Dso, "dso", FieldValues::String(|hit| hit.file()))
        .help("path of the file at the address")
        .lacking(NOT_KNOWN),
    spec(
        Field::Period,
        "period",
        FieldValues::Number(|hit| Ok(hit.weight())),
    )
    .help("how many events it counts as"),
    spec(Field::Args, "args", FieldValues::Several)
        .help("the arguments")
        .in_json("object", "the arguments"),
    spec(Field::Span, SPAN, FieldValues::Several)
        .help("name and duration of the span that the event ends")
        .in_json("string", "name of the span that the event ends")
        .lacking("absent of events that end no span"),
];

/// Name of a span, in JSON and CSV; in templates how long it lasted.
pub const SPAN: &str = "span";
/// Duration of a span, ns.
pub const SPAN_NS: &str = "span_ns";
/// Name of a span in templates.
pub const SPAN_NAME: &str = "span_name";
/// Duration of a span in rows, Parquet files and the Python package, ns.
pub const DURATION_NS: &str = "duration_ns";
/// Time in a span and in none of the same name within it, ns.
pub const SELF_NS: &str = "self_ns";
/// What became of a span.
pub const FATE: &str = "fate";
/// The event that begins a span.
pub const BEGIN: &str = "begin";
/// The event that ends it.
pub const END: &str = "end";

/// A field of a span in the table.
#[derive(Clone, Copy, Debug)]
pub struct SpanFieldSpec {
    /// Name in rows, Parquet files and the Python package.
    pub name: &'static str,
    /// Name in lines of `script`, which do not have all.
    pub member: Option<&'static str>,
    /// Type of its member in JSON.
    pub json: &'static str,
    /// What it is, in documents.
    pub meaning: &'static str,
    /// When it is null.
    pub lacking: &'static str,
}

const fn of_span(
    name: &'static str,
    json: &'static str,
    meaning: &'static str,
    lacking: &'static str,
) -> SpanFieldSpec {
    SpanFieldSpec {
        name,
        member: Some(name),
        json,
        meaning,
        lacking,
    }
}

const WITHOUT_END: &str = "null without an end";
const WITHOUT_PARTS: &str =
    "null if not known, as without an end; in lines, absent if no waits were recorded";

const fn of_part(part: TimePart) -> SpanFieldSpec {
    let spec = part.spec();
    of_span(spec.column, "integer", spec.meaning, WITHOUT_PARTS)
}

const fn of_own_part(part: TimePart) -> SpanFieldSpec {
    let spec = part.spec();
    SpanFieldSpec {
        member: None,
        ..of_span(spec.own_column, "integer", spec.own_meaning, WITHOUT_PARTS)
    }
}

/// All fields of spans.
pub const SPAN_FIELDS: [SpanFieldSpec; 14] = [
    of_span(SPAN, "string", "name of the span", ""),
    SpanFieldSpec {
        member: Some(SPAN_NS),
        ..of_span(DURATION_NS, "integer", "how long it lasted", WITHOUT_END)
    },
    SpanFieldSpec {
        member: None,
        ..of_span(
            SELF_NS,
            "integer",
            "time in it and in no span of the same name within it",
            WITHOUT_END,
        )
    },
    of_part(TimePart::OnCpu),
    of_part(TimePart::Runnable),
    of_part(TimePart::Iowait),
    of_part(TimePart::Blocked),
    of_own_part(TimePart::OnCpu),
    of_own_part(TimePart::Runnable),
    of_own_part(TimePart::Iowait),
    of_own_part(TimePart::Blocked),
    of_span(
        FATE,
        "string",
        "`ended`; `unfinished`: a span around it ended without it, or the next one began; `paused`: it was open when its probes were detached to keep to \
         the budget; `open`: it has not ended",
        "",
    ),
    of_span(BEGIN, "object", "the event that begins it", ""),
    of_span(END, "object", "the event that ends it", WITHOUT_END),
];

impl Field {
    /// Its entry in the table.
    #[must_use]
    pub const fn spec(self) -> &'static FieldSpec {
        const ALL: &[FieldSpec] = &FIELDS;
        let mut at = 0;
        while ALL[at].field as u32 != self as u32 {
            at += 1;
        }
        &ALL[at]
    }

    /// The field of a name.
    pub fn named(name: &str) -> Option<Self> {
        // What perf calls the arguments of a tracepoint.
        let name = if name == "trace" { "args" } else { name };
        let name = canonical(name);
        let spec = FIELDS.iter().find(|spec| spec.name == name)?;
        Some(spec.field)
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

/// The names of all fields, with what each of them is.
#[must_use]
pub fn field_help() -> Vec<String> {
    let described = FIELDS
        .iter()
        .map(|spec| format!("{} ({})", spec.name, spec.help));
    described.map(|text| text.replace('`', "")).collect()
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

    /// What lines of spans can have.
    pub const OF_SPANS: Self = Self::from_slice(&[
        Field::Comm,
        Field::Tid,
        Field::Pid,
        Field::Cpu,
        Field::Time,
        Field::Tod,
        Field::Event,
        Field::Args,
        Field::Span,
    ]);

    /// What data have of the hits that begin and end spans.
    pub const OF_SIDES: Self = Self::OF_SPANS.without(Self::from_slice(&[Field::Tod, Field::Span]));

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
