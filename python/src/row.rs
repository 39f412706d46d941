//! A row as a dict: members have the names that they have in `script --format json`.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use usdtrec_report::fields::{BEGIN, DURATION_NS, END, FATE, Field, SELF_NS, SPAN};
use usdtrec_report::rows::{
    FrameName, ProcessValue, RowArgument, RowEvent, RowSpan, RowStack, RowValue, SpanFate,
};

/// An event or a span that outlives the walk.
pub(crate) enum OwnedRow {
    Event(Box<OwnedEvent>),
    Span(Box<OwnedSpan>),
}

pub(crate) struct OwnedEvent {
    time_ns: Option<u64>,
    wall_ns: Option<i64>,
    cpu: Option<u32>,
    pid: i32,
    tid: i32,
    comm: Option<String>,
    /// By their names.
    process_fields: Vec<(&'static str, OwnedValue)>,
    event: String,
    provider: Option<String>,
    probe: String,
    ip: u64,
    arguments: Vec<OwnedArgument>,
    stack: Option<RowStack>,
}

pub(crate) struct OwnedSpan {
    span: String,
    fate: SpanFate,
    duration_ns: Option<u64>,
    self_ns: Option<u64>,
    /// What it was spent on, by their names.
    parts: Vec<(&'static str, Option<u64>)>,
    begin: OwnedEvent,
    end: Option<OwnedEvent>,
}

#[derive(Default)]
struct OwnedArgument {
    name: String,
    value: OwnedValue,
    missing: Option<String>,
    number: Option<u64>,
    demangled: Option<String>,
    is_cut: bool,
    bytes: Option<Vec<u8>>,
}

#[derive(Default)]
enum OwnedValue {
    #[default]
    Missing,
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    String(String),
    Bytes(Vec<u8>),
}

impl OwnedRow {
    pub(crate) fn of_event(event: RowEvent<'_>) -> Self {
        Self::Event(Box::new(OwnedEvent::new(event)))
    }

    pub(crate) fn of_span(span: RowSpan<'_>) -> Self {
        Self::Span(Box::new(OwnedSpan {
            span: span.name().to_owned(),
            fate: span.fate(),
            duration_ns: span.duration_ns(),
            self_ns: span.self_ns(),
            parts: span.named_parts().collect(),
            begin: OwnedEvent::new(span.begin()),
            end: span.end().map(OwnedEvent::new),
        }))
    }

    pub(crate) fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            Self::Event(event) => event.dict(py),
            Self::Span(span) => span.dict(py),
        }
    }
}

impl OwnedEvent {
    fn new(event: RowEvent<'_>) -> Self {
        Self {
            time_ns: event.time_ns(),
            wall_ns: event.wall_ns(),
            cpu: event.cpu(),
            pid: event.pid(),
            tid: event.tid(),
            comm: event.comm().map(str::to_owned),
            process_fields: event
                .process_fields()
                .map(|(name, value)| (name, OwnedValue::of_process(value)))
                .collect(),
            event: event.name().to_owned(),
            provider: event.provider().map(str::to_owned),
            probe: event.probe().to_owned(),
            ip: event.ip(),
            arguments: event.arguments().map(OwnedArgument::new).collect(),
            stack: event.stack(),
        }
    }

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        row.set_item(const { Field::Time.spec().column }, self.time_ns)?;
        row.set_item("wall_ns", self.wall_ns)?;
        row.set_item(const { Field::Cpu.spec().column }, self.cpu)?;
        row.set_item(const { Field::Pid.spec().column }, self.pid)?;
        row.set_item(const { Field::Tid.spec().column }, self.tid)?;
        row.set_item(const { Field::Comm.spec().column }, self.comm.as_deref())?;
        for (name, value) in &self.process_fields {
            value.put(name, &row)?;
        }
        row.set_item(const { Field::Event.spec().column }, &*self.event)?;
        row.set_item("provider", self.provider.as_deref())?;
        row.set_item("probe", &*self.probe)?;
        row.set_item(const { Field::Ip.spec().column }, self.ip)?;
        let arguments = PyDict::new(py);
        for argument in &self.arguments {
            argument.put(&arguments, &row)?;
        }
        row.set_item(const { Field::Args.spec().column }, arguments)?;
        if let Some(stack) = &self.stack {
            row.set_item("stack", frames(py, stack)?)?;
            if let Some(cut) = &stack.cut {
                row.set_item("stack_cut", cut)?;
            }
        }
        Ok(row)
    }
}

impl OwnedSpan {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let end = self.end.as_ref().map(|end| end.dict(py)).transpose()?;
        let row = PyDict::new(py);
        row.set_item(SPAN, &*self.span)?;
        row.set_item(FATE, self.fate.word())?;
        row.set_item(DURATION_NS, self.duration_ns)?;
        row.set_item(SELF_NS, self.self_ns)?;
        for (name, ns) in &self.parts {
            row.set_item(*name, *ns)?;
        }
        row.set_item(BEGIN, self.begin.dict(py)?)?;
        row.set_item(END, end)?;
        Ok(row)
    }
}

impl OwnedArgument {
    fn new(argument: RowArgument<'_>) -> Self {
        let mut owned = Self {
            name: argument.name().to_owned(),
            ..Self::default()
        };
        owned.value = match argument.value() {
            RowValue::Signed(number) => OwnedValue::Signed(number),
            RowValue::Unsigned(number) | RowValue::Address(number) => OwnedValue::Unsigned(number),
            RowValue::Float32(number) => OwnedValue::Float(number.into()),
            RowValue::Float64(number) => OwnedValue::Float(number),
            RowValue::Bool(is) => OwnedValue::Bool(is),
            RowValue::Word { word, .. } => OwnedValue::String(word),
            RowValue::String(string) => {
                let shown = string.text().into_owned();
                owned.bytes = (shown.as_bytes() != string.bytes).then(|| string.bytes.to_vec());
                owned.is_cut = string.is_cut;
                owned.number = string.number;
                owned.demangled = string.demangled;
                OwnedValue::String(shown)
            }
            RowValue::Bytes { bytes, is_cut } => {
                owned.is_cut = is_cut;
                OwnedValue::Bytes(bytes.to_vec())
            }
            RowValue::Missing(reason) => {
                owned.missing = Some(reason);
                OwnedValue::Missing
            }
        };
        owned
    }

    /// Puts the value into the dict of arguments, and what it does not say next to that.
    fn put(&self, arguments: &Bound<'_, PyDict>, row: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = row.py();
        let name = &*self.name;
        self.value.put(name, arguments)?;
        if let Some(reason) = &self.missing {
            member(row, "missing")?.set_item(name, reason)?;
        }
        if let Some(number) = self.number {
            member(row, "numbers")?.set_item(name, number)?;
        }
        if let Some(readable) = &self.demangled {
            member(row, "demangled")?.set_item(name, readable)?;
        }
        if self.is_cut {
            member(row, "cut")?.set_item(name, true)?;
        }
        if let Some(bytes) = &self.bytes {
            member(row, "bytes")?.set_item(name, PyBytes::new(py, bytes))?;
        }
        Ok(())
    }
}

impl OwnedValue {
    fn of_process(value: Option<ProcessValue<'_>>) -> Self {
        match value {
            Some(ProcessValue::Number(number)) => Self::Unsigned(number),
            Some(text) => Self::String(text.text().unwrap_or_default().to_owned()),
            None => Self::Missing,
        }
    }

    /// Puts the value into a dict.
    fn put(&self, name: &str, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = dict.py();
        match self {
            Self::Missing => dict.set_item(name, py.None()),
            Self::Signed(number) => dict.set_item(name, number),
            Self::Unsigned(number) => dict.set_item(name, number),
            Self::Float(number) => dict.set_item(name, number),
            Self::Bool(is) => dict.set_item(name, is),
            Self::String(text) => dict.set_item(name, text),
            Self::Bytes(bytes) => dict.set_item(name, PyBytes::new(py, bytes)),
        }
    }
}

/// The dict that is a member of a row.
fn member<'py>(row: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    if let Some(known) = row.get_item(name)? {
        return Ok(known.cast_into()?);
    }
    let new = PyDict::new(row.py());
    row.set_item(name, &new)?;
    Ok(new)
}

/// The frames of a stack, the innermost first.
fn frames<'py>(py: Python<'py>, stack: &RowStack) -> PyResult<Bound<'py, PyList>> {
    let frames = PyList::empty(py);
    for name in &stack.frames {
        let frame = PyDict::new(py);
        let put_file = |file: &Path| frame.set_item("dso", file.to_string_lossy());
        match name {
            FrameName::Function {
                name,
                file,
                inlined,
            } => {
                frame.set_item("sym", &**name)?;
                put_file(file)?;
                if *inlined {
                    frame.set_item("inlined", true)?;
                }
            }
            FrameName::Offset { file, offset } => {
                frame.set_item("sym", py.None())?;
                put_file(file)?;
                frame.set_item("offset", offset)?;
            }
            FrameName::Address(address) => {
                frame.set_item("sym", py.None())?;
                frame.set_item("dso", py.None())?;
                frame.set_item("ip", address)?;
            }
            FrameName::Script { name, file } => {
                frame.set_item("sym", &**name)?;
                match file {
                    Some(file) => put_file(file)?,
                    None => frame.set_item("dso", py.None())?,
                }
            }
        }
        frames.append(frame)?;
    }
    Ok(frames)
}
