//! One JSON object a line; `report/FIELDS.md` describes its members.

use std::sync::Arc;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::{NoTimeParts, Value};
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::calls::function::ScriptFunction;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::field_value::{FieldSource, FieldValue};
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::json_arguments::{JsonArgument, put_arguments};
use crate::script::arguments::of_unknown_site;
use crate::script::call_chain::{LineChains, LineFrame};
use crate::script::line_field::LineField;
use crate::script::options::ScriptOptions;
use crate::script::row_writer::RowWriter;
use crate::script::spans::put_json_parts;
use crate::script::times::{TimesOfDay, WallClock};
use crate::text::buffer::{Piece, Text};
use crate::text::quoted::json_string;

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct JsonStyle {
    /// The fields that are requested.
    fields: Fields,
    /// The members of a hit before its stack, and those after it.
    members: [Vec<JsonMember>; 2],
    clock: Option<WallClock>,
    /// An argument of a site that is not known.
    unknown: Value,
    events: Vec<JsonEvent>,
    /// Names of spans as JSON strings.
    spans: Vec<String>,
    max_stack: Option<usize>,
    /// If the functions of scripts are shown in place of call chains.
    pub(crate) calls: Option<Arc<ScriptCalls>>,
}

/// A member of a hit.
#[derive(Debug)]
struct JsonMember {
    /// A comma, the name, and a colon.
    key: Piece,
    field: LineField,
    /// Whether it is absent without a value, not null.
    is_optional: bool,
    /// Whether it is the name of the event, the same in all its hits.
    is_event: bool,
}

/// Settings for all lines of an event.
#[derive(Debug)]
struct JsonEvent {
    /// Its name as a JSON string.
    name: Piece,
    /// Whether its call chains are shown.
    chain: bool,
    /// The arguments that are shown.
    arguments: Vec<JsonArgument>,
}

impl JsonStyle {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let fields = options.data_fields();
        let calls = options.calls(session)?;
        let mut of_hits = LineField::of_hits(options);
        let clock = LineField::utc_clock(&of_hits, session)?;
        let place = |field: &LineField| match field {
            LineField::Of(spec) if spec.field == Field::Period => 2,
            LineField::Of(spec) if spec.field == Field::Srcline => 1,
            _ => 0,
        };
        of_hits.sort_by_key(place);
        let after = of_hits.partition_point(|field| place(field) < 2);
        let after = of_hits.split_off(after);
        let is = |field, one| matches!(field, LineField::Of(spec) if spec.field == one);
        let members = |fields: Vec<LineField>| {
            let members = fields.into_iter().map(|field| JsonMember {
                key: Piece::new(format!(",\"{}\":", field.name()).as_bytes()),
                field,
                is_optional: is(field, Field::Symoff),
                is_event: is(field, Field::Event),
            });
            members.collect()
        };
        let events = session.events().events.iter().map(|event| {
            let arguments = options.fields.arguments.shown(&event.arguments);
            let arguments = arguments.into_iter().map(|argument| JsonArgument {
                place: argument.place,
                name: Piece::new((json_string(&argument.name) + ":").as_bytes()),
                form: argument.form,
            });
            JsonEvent {
                name: Piece::new(json_string(&event.name).as_bytes()),
                chain: (event.has_chain() || calls.is_some())
                    && !options.hide_call_graph
                    && fields.has(Field::Ip),
                arguments: arguments.collect(),
            }
        });
        Ok(Self {
            fields,
            members: [of_hits, after].map(members),
            clock,
            unknown: of_unknown_site(),
            events: events.collect(),
            spans: pairs.iter().map(|pair| json_string(&pair.name)).collect(),
            max_stack: options.max_stack,
            calls,
        })
    }
}

impl JsonMember {
    fn put(
        &self,
        hit: &mut FieldSource<'_, '_>,
        before: PreviousTimes,
        times_of_day: &mut Option<TimesOfDay<'_>>,
        out: &mut Text,
    ) {
        match self.field.value(hit, before) {
            Ok(value) => {
                out.piece(&self.key);
                value.put(b"\"", times_of_day, |text, out| out.json_string(text), out);
            }
            Err(_) if self.is_optional => {}
            Err(_) => {
                out.piece(&self.key);
                out.fixed(b"null");
            }
        }
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct JsonLines<'s> {
    style: &'s JsonStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    resolver: Resolver<'s>,
    chains: LineChains<'s>,
}

/// Appends a frame.
fn put_frame(fields: Fields, session: &TraceSession, frame: &LineFrame<'_>, out: &mut Text) {
    out.fixed(b"{\"ip\":\"0x");
    out.hex(frame.address);
    out.byte(b'"');
    if fields.has(Field::Sym) {
        out.fixed(b",\"sym\":");
        put_string(frame.function, out);
    }
    if let (true, Some(symbol)) = (fields.has(Field::Symoff), &frame.place.symbol) {
        out.fixed(b",\"symoff\":");
        out.unsigned(symbol.offset);
    }
    if fields.has(Field::Dso) {
        let file = frame.place.file;
        let file = file.and_then(|file| session.mappings().file(file));
        let path = file.map(|file| FieldValue::Path(&file.path));
        out.fixed(b",\"dso\":");
        put_string(path.as_ref().and_then(FieldValue::text).as_deref(), out);
    }
    if fields.has(Field::Srcline) {
        out.fixed(b",\"srcline\":");
        put_string(frame.source.map(ToString::to_string).as_deref(), out);
    }
    if frame.is_inlined {
        out.fixed(b",\"inlined\":true");
    }
    out.byte(b'}');
}

/// Appends a string; `null` if it is not known.
fn put_string(string: Option<&str>, out: &mut Text) {
    match string {
        Some(string) => out.json_string(string),
        None => out.fixed(b"null"),
    }
}

/// The functions of a script.
fn script_frames(functions: &[Arc<ScriptFunction>], most: Option<usize>, out: &mut Text) {
    out.fixed(b",\"stack\":[");
    let shown = functions.iter().take(most.unwrap_or(usize::MAX));
    for (at, function) in shown.enumerate() {
        out.bytes(if at == 0 { b"{" } else { b",{" });
        out.fixed(b"\"sym\":");
        out.json_string(&function.name);
        out.fixed(b",\"file\":");
        let path = function.file.as_deref().map(FieldValue::Path);
        put_string(path.as_ref().and_then(FieldValue::text).as_deref(), out);
        out.byte(b'}');
    }
    out.byte(b']');
}

impl<'s> RowWriter<'s> for JsonLines<'s> {
    fn resolver(&mut self) -> &mut Resolver<'s> {
        &mut self.resolver
    }

    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text) {
        let Hit { target, sample } = hit;
        let style = self.style;
        let Some(event) = style.events.get(target.event as usize) else {
            return;
        };
        let start = out.len();
        for (at, members) in style.members.iter().enumerate() {
            if at > 0 && event.chain {
                self.chain(hit, out);
            }
            let mut source = FieldSource {
                resolver: &mut self.resolver,
                hit,
                known: None,
            };
            for member in members {
                if member.is_event {
                    out.piece(&member.key);
                    out.piece(&event.name);
                } else {
                    member.put(&mut source, before, &mut self.times_of_day, out);
                }
            }
        }
        if style.fields.has(Field::Args) {
            out.byte(b',');
            let site = self.resolver.session().site_of(target, sample);
            let values = site.map(|site| self.resolver.values(site, sample));
            let value = |at| values.map_or(Some(&style.unknown), |values: &[Value]| values.get(at));
            put_arguments(&event.arguments, value, out);
        }
        end_object(start, out);
        out.byte(b'\n');
    }

    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text) {
        let names = &self.style.spans;
        out.fixed(b"{\"span\":");
        out.string(names.get(span.pair).map_or("null", String::as_str));
        out.fixed(b",\"span_ns\":");
        match span.end {
            Some(end) => out.unsigned(end.duration),
            None => out.fixed(b"null"),
        }
        if span.parts() != Err(NoTimeParts::NotRecorded) {
            put_json_parts(span.parts().ok(), out);
        }
        out.fixed(b",\"fate\":\"");
        out.string(span.fate.word());
        out.fixed(b"\",\"begin\":");
        self.side(span.begin, before, out);
        out.fixed(b",\"end\":");
        match span.end {
            Some(end) => self.side(end.hit, before, out),
            None => out.fixed(b"null"),
        }
        out.fixed(b"}\n");
    }
}

/// Ends an object whose members, from `start` on, have a comma before each.
fn end_object(start: usize, out: &mut Text) {
    match out.byte_at(start) {
        Some(comma) => *comma = b'{',
        None => out.byte(b'{'),
    }
    out.byte(b'}');
}

impl<'s> JsonLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s JsonStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
            chains: LineChains::new(session, style.max_stack),
        }
    }

    /// The hit that begins or ends a span.
    fn side(&mut self, hit: RowHit<'_>, before: PreviousTimes, out: &mut Text) {
        let style = self.style;
        let start = out.len();
        let sample = hit.row.sample();
        let mut source = hit.row.source(&sample, &mut self.resolver);
        for member in style.members.iter().flatten() {
            member.put(&mut source, before, &mut self.times_of_day, out);
        }
        if let (true, Some(event)) = (
            style.fields.has(Field::Args),
            style.events.get(hit.row.event),
        ) {
            out.byte(b',');
            put_arguments(&event.arguments, |at| hit.values.get(at), out);
        }
        end_object(start, out);
    }

    /// The call chain, and why it is cut.
    fn chain(&mut self, hit: Hit<'_>, out: &mut Text) {
        let style = self.style;
        if let Some(calls) = &style.calls {
            let path = self.resolver.path().unwrap_or_default();
            return script_frames(&calls.functions(path), style.max_stack, out);
        }
        let session = self.resolver.session();
        let mut is_first = true;
        out.fixed(b",\"stack\":[");
        let resolver = &mut self.resolver;
        let cut = self.chains.each(resolver, style.fields, hit, |frame| {
            if !std::mem::take(&mut is_first) {
                out.byte(b',');
            }
            put_frame(style.fields, session, frame, out);
        });
        out.byte(b']');
        if let Some(cut) = cut {
            out.fixed(b",\"stack_cut\":");
            out.json_string(&cut);
        }
    }
}
