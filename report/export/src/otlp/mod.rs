//! OpenTelemetry's protocol (OTLP): spans, as lines of JSON (`{"resourceSpans":…}`) or as one `TracesData` message.
//!
//! A resource is a process in a control group. Attributes of a span: those that schemas name (`db.query.text`), of the hit that begins it, and else of the one that ends it;
//! `begin.NAME` and `end.NAME` are the arguments that are no such attribute, `begin.missing.NAME` why there is none, `begin.cut.NAME` and
//! `begin.bytes.NAME` (hexadecimal, of a string that is not UTF-8) as in `script --format json`; `thread.id`, `thread.name`, `cpu`,
//! `self_ns`, what it was spent on (`blocked_ns`, `self_blocked_ns`, …), `code.stacktrace`. There are no unsigned integers of 64 bits: those beyond 2^63 are strings. A span that has no end has no end time, and
//! the reason in `span`. Events of no span are left out. The parent of a span is that which an argument says, else the span of the thread context at
//! its begin, else at its end.

pub(crate) mod event_attributes;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod span_ids;
pub(crate) mod telemetry_span;

use std::collections::BTreeMap;
use std::io::{self, Write};

use usdtrec_analysis::origin::Origin;
use usdtrec_analysis::rows::hit_row::{HitRow, RowHit};
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanFate, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_analysis::spans::spent_time::SpentTime;
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_format::schema::telemetry::SpanKind;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::form::Form;
use usdtrec_trace::process::names::NameId;
use usdtrec_trace::process::process_field::{
    CGROUP, CONTAINER, ProcessField, ProcessValue, SERVICE,
};
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::wall_times::WallTimes;
use usdtrec_view::frames::{cut_text, frame_text};
use usdtrec_view::text::buffer::Text;

use crate::otlp::event_attributes::{AttributeValue, EventAttribute};
use crate::otlp::span_ids::{ParentIds, SpanIdSource, parsed_trace};
use crate::otlp::telemetry_span::{Attribute, Resource, ResourceSpans, TelemetrySpan};
use crate::redaction::{KeptArgument, RedactedArguments};
use crate::thread_names::name;
use crate::typed_value::{TypedValue, guessed_address, is_cut, string_bytes};

/// Spans that are written together.
const TOGETHER: usize = 512;

/// How spans are encoded.
pub(crate) type Encode = fn(&[ResourceSpans]) -> Vec<u8>;

/// Writes the format.
pub(crate) struct OtlpSpans<'a> {
    session: &'a TraceSession,
    out: &'a mut dyn Write,
    encode: Encode,
    host: String,
    machine: String,
    times: &'a WallTimes,
    pairs: Vec<String>,
    events: Vec<OtlpEvent>,
    ids: SpanIdSource,
    stacks: Stacks,
    /// By their resources.
    waiting: BTreeMap<ResourceKey, ResourceSpans>,
    count: usize,
    written: u64,
}

/// What hits have, by event.
pub(crate) struct OtlpEvents(Vec<OtlpEvent>);

/// What hits of an event have.
struct OtlpEvent {
    /// By place; `None` for those that are left out.
    arguments: Vec<Option<OtlpArgument>>,
    /// As a schema names them.
    attributes: Vec<EventAttribute>,
    /// Of a span that begins there.
    kind: SpanKind,
}

/// An argument of an event.
struct OtlpArgument {
    name: String,
    form: Form,
    /// Whether its values are ids of traces.
    is_trace: bool,
}

impl OtlpEvents {
    /// `trace` is the argument that has the ids of traces.
    ///
    /// # Errors
    /// [`ReportError::Question`] if no event has the argument, or if it is left out.
    pub(crate) fn new(
        session: &TraceSession,
        redacted: &RedactedArguments,
        trace: Option<&str>,
    ) -> Result<Self, ReportError> {
        let mut has_trace = trace.is_none();
        let events = session.events().events.iter().enumerate();
        let events = events.map(|(at, event)| {
            let wanted = trace.and_then(|trace| event.argument(trace));
            let mut arguments: Vec<Option<OtlpArgument>> = Vec::new();
            arguments.resize_with(event.arguments.len(), || None);
            for KeptArgument { place, argument } in redacted.kept(at, event) {
                has_trace |= wanted == Some(place);
                if let Some(one) = arguments.get_mut(place) {
                    *one = Some(OtlpArgument {
                        form: Form::new(&argument).plain(),
                        name: argument.name,
                        is_trace: wanted == Some(place),
                    });
                }
            }
            OtlpEvent {
                arguments,
                attributes: EventAttribute::all(event),
                kind: event.telemetry.kind.unwrap_or(SpanKind::Internal),
            }
        });
        let events = events.collect();
        if let (Some(name), false) = (trace, has_trace) {
            return Err(QuestionError::no_argument(name, String::new(), &[]).into());
        }
        Ok(Self(events))
    }
}

impl<'a> OtlpSpans<'a> {
    /// # Errors
    /// [`ReportError::Question`] without the time of day, which OTLP needs.
    pub(crate) fn new(
        session: &'a TraceSession,
        walk: &RowWalk<'_>,
        OtlpEvents(events): OtlpEvents,
        encode: Encode,
        out: &'a mut dyn Write,
    ) -> Result<Self, ReportError> {
        let times = session.wall_times().ok_or(QuestionError::NoTimeOfDay)?;
        let origin = Origin::new(session);
        Ok(Self {
            session,
            out,
            encode,
            ids: SpanIdSource::new(&origin.host),
            host: origin.host,
            machine: origin.machine,
            times,
            pairs: walk.pairs.iter().map(|pair| pair.name.clone()).collect(),
            events,
            stacks: Stacks::default(),
            waiting: BTreeMap::new(),
            count: 0,
            written: 0,
        })
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.write()?;
        Ok(self.written)
    }

    fn write(&mut self) -> io::Result<()> {
        self.count = 0;
        let waiting = std::mem::take(&mut self.waiting);
        let all: Vec<ResourceSpans> = waiting.into_values().collect();
        if all.is_empty() {
            return Ok(());
        }
        self.out.write_all(&(self.encode)(&all))
    }

    /// Nanoseconds since 1970.
    fn wall(&self, time: u64) -> u64 {
        u64::try_from(self.times.wall(time)).unwrap_or(0)
    }

    /// Appends the attributes that a schema names and that are not among those from `first` on. Returns the places of arguments whose
    /// values are there with them.
    fn named(&self, hit: RowHit<'_>, first: usize, out: &mut Vec<Attribute>) -> Vec<usize> {
        let mut written = Vec::new();
        let Some(event) = self.events.get(hit.row.event) else {
            return written;
        };
        let form = |at: usize| Some(&event.arguments.get(at)?.as_ref()?.form);
        for attribute in &event.attributes {
            let named = out.get(first..).unwrap_or_default();
            if named.iter().any(|known| known.key == attribute.name) {
                continue;
            }
            let Some(AttributeValue { value, of_argument }) = attribute.value(form, hit.values)
            else {
                continue;
            };
            written.extend(of_argument);
            out.push(Attribute {
                key: attribute.name.clone(),
                value,
            });
        }
        written
    }

    /// Appends the attributes of a hit; values of arguments at the places in `written` are there already.
    fn hit(&mut self, side: &str, hit: RowHit<'_>, written: &[usize], out: &mut Vec<Attribute>) {
        let event = self.events.get(hit.row.event);
        let arguments = event.map_or(&[][..], |event| &event.arguments);
        let both = arguments.iter().zip(hit.values).enumerate();
        for (at, (argument, value)) in both {
            let Some(OtlpArgument { name, form, .. }) = argument else {
                continue;
            };
            let mut put = |kind: &str, value| {
                out.push(Attribute {
                    key: format!("{side}.{kind}{name}"),
                    value,
                });
            };
            if !written.contains(&at) {
                match TypedValue::new(form, value).owned() {
                    TypedValue::Missing(reason) => {
                        put("missing.", TypedValue::String(reason.into()))
                    }
                    typed => put("", typed),
                }
            }
            if is_cut(value) {
                put("cut.", TypedValue::Bool(true));
            }
            if let Some(bytes) = string_bytes(form, value) {
                let mut text = Text::default();
                text.hex_bytes(bytes);
                put("bytes.", TypedValue::String(text.into_string().into()));
            }
            if let Some(address) = guessed_address(value) {
                put("numbers.", TypedValue::Unsigned(address));
            }
        }
        if let Some(cpu) = hit.row.cpu {
            out.push(Attribute {
                key: format!("{side}.cpu"),
                value: TypedValue::Unsigned(cpu.into()),
            });
        }
    }

    fn stack(&mut self, hit: RowHit<'_>) -> Option<Attribute> {
        if hit.stack.is_empty() {
            return None;
        }
        let stack = self.stacks.names(hit.stack, self.session);
        let frames = stack.frames.iter().map(frame_text);
        let lines: Vec<String> = frames.chain(stack.cut.iter().map(cut_text)).collect();
        Some(Attribute {
            key: "code.stacktrace".to_owned(),
            value: TypedValue::String(lines.join("\n").into()),
        })
    }

    /// The id of the trace that a hit has in an argument.
    fn trace_of(&self, hit: RowHit<'_>) -> Option<ParentIds> {
        let event = self.events.get(hit.row.event)?;
        let both = event.arguments.iter().zip(hit.values);
        let mut known = both.filter_map(|(argument, value)| Some((argument.as_ref()?, value)));
        let (argument, value) = known.find(|(argument, _)| argument.is_trace)?;
        match TypedValue::new(&argument.form, value) {
            TypedValue::String(string) => parsed_trace(&string),
            _ => None,
        }
    }

    fn resource(&self, row: &HitRow) -> Resource {
        let known = self.session.processes().comm(row.pid, row.time).name;
        let text = |field: &ProcessField| {
            let found = self.session.process_value(field, &row.process).ok();
            let text = found.as_ref().and_then(ProcessValue::text);
            text.map_or_else(String::new, str::to_owned)
        };
        Resource {
            host: self.host.clone(),
            machine: self.machine.clone(),
            pid: row.pid,
            cgroup: text(&CGROUP),
            container: text(&CONTAINER),
            service: text(&SERVICE),
            name: known.map_or_else(String::new, |id| name(self.session, id).to_owned()),
        }
    }
}

/// What tells resources from each other: a process may change its control group, and execute another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResourceKey {
    pid: i32,
    cgroup: Option<NameId>,
    service: Option<NameId>,
}

impl ResourceKey {
    const fn new(row: &HitRow) -> Self {
        Self {
            pid: row.pid,
            cgroup: row.process.recorded.path(),
            service: row.process.recorded.service(),
        }
    }
}

/// What a span was spent on, as far as it is known.
fn parts(spent: SpentTime) -> impl Iterator<Item = Attribute> {
    SpentTime::named(Some(spent)).filter_map(|(key, ns)| {
        Some(Attribute {
            key: key.to_owned(),
            value: TypedValue::Unsigned(ns?),
        })
    })
}

impl RowSink for OtlpSpans<'_> {
    fn event(&mut self, _: RowHit<'_>, _: RowSide) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let begin = span.begin.row;
        let mut attributes = vec![Attribute {
            key: "thread.id".to_owned(),
            value: TypedValue::Signed(begin.tid.into()),
        }];
        if let Some(comm) = begin.comm {
            attributes.push(Attribute {
                key: "thread.name".to_owned(),
                value: TypedValue::String(name(self.session, comm).to_owned().into()),
            });
        }
        let first = attributes.len();
        let written = self.named(span.begin, first, &mut attributes);
        let written_by_end = span
            .end
            .map(|end| self.named(end.hit, first, &mut attributes));
        self.hit("begin", span.begin, &written, &mut attributes);
        attributes.extend(self.stack(span.begin));
        if let Some(end) = span.end {
            let written = written_by_end.unwrap_or_default();
            self.hit("end", end.hit, &written, &mut attributes);
            attributes.push(Attribute {
                key: "self_ns".to_owned(),
                value: TypedValue::Unsigned(end.own),
            });
            attributes.extend(parts(end.spent));
        }
        if span.fate != SpanFate::Ended {
            attributes.push(Attribute {
                key: "span".to_owned(),
                value: TypedValue::String(span.fate.word().into()),
            });
        }
        let given = self
            .trace_of(span.begin)
            .or_else(|| self.trace_of(span.end?.hit))
            .or_else(|| ParentIds::from_context(begin))
            .or_else(|| ParentIds::from_context(span.end?.hit.row));
        let ids = self.ids.next(begin, given);
        let made = TelemetrySpan {
            ids,
            name: self.pairs.get(span.pair).cloned().unwrap_or_default(),
            kind: self
                .events
                .get(begin.event)
                .map_or(SpanKind::Internal, |event| event.kind),
            start: self.wall(begin.time),
            end: span.end_time().map(|end| self.wall(end)),
            attributes,
        };
        let key = ResourceKey::new(begin);
        let resource = match self.waiting.contains_key(&key) {
            true => None,
            false => Some(self.resource(begin)),
        };
        let waiting = self.waiting.entry(key);
        let waiting = waiting.or_insert_with(|| ResourceSpans {
            resource: resource.unwrap_or_default(),
            spans: Vec::new(),
        });
        waiting.spans.push(made);
        self.count += 1;
        self.written += 1;
        match self.count < TOGETHER {
            true => Ok(()),
            false => self.write(),
        }
    }
}
