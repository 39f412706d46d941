//! One JSON object a line; `report/FIELDS.md` describes its members.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use usdtrec_format::escape::escape_bytes;
use usdtrec_format::perf::Sample;
use usdtrec_format::{SourceLine, Value};
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::calls::function::ScriptFunction;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::form::Form;
use usdtrec_trace::process::names::{EscapedName, NameId};
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::{CodeLocation, Resolver};
use usdtrec_trace::symbols::known_inlining::FoundInlining;
use usdtrec_trace::unwind::CallChains;
use usdtrec_trace::unwind::chain_address::ChainAddress;
use usdtrec_trace::unwind::known_cut::KnownCut;

use crate::json_arguments::{JsonArgument, put_arguments};
use crate::script::arguments::of_unknown_site;
use crate::script::lines_calls::calls_of;
use crate::script::location::whole_source_text;
use crate::script::options::ScriptOptions;
use crate::script::times::{TimeOrigin, TimesOfDay, WallClock};
use crate::stack_cut::reason;
use crate::text::buffer::{Piece, Text};
use crate::text::quoted::json_string;

/// Names of threads that are remembered.
const NAMES: usize = 256;

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct JsonStyle {
    fields: Fields,
    times: TimeOrigin,
    clock: Option<WallClock>,
    /// An argument of a site that is not known.
    unknown: Value,
    events: Vec<JsonEvent>,
    max_stack: Option<usize>,
    /// If the functions of scripts are shown in place of call chains.
    pub(crate) calls: Option<Arc<ScriptCalls>>,
}

/// Settings for all lines of an event.
#[derive(Debug)]
struct JsonEvent {
    /// The fields that its samples have.
    sampled: Fields,
    /// The name as a JSON string.
    name: Piece,
    /// Whether its call chains are shown.
    chain: bool,
    /// The fields that are shown.
    arguments: Vec<JsonArgument>,
}

/// The name of a thread that is remembered.
#[derive(Clone, Debug, Default)]
struct JsonName {
    id: Option<NameId>,
    /// As a JSON string.
    text: Piece,
}

impl JsonStyle {
    pub(crate) fn new(
        session: &TraceSession,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let fields = options.fields.apply(Fields::DATA);
        let calls = calls_of(session, options)?;
        let tod = fields.has(Field::Tod);
        let events = session.events().events.iter().map(|event| JsonEvent {
            sampled: event.sampled_fields(),
            name: Piece::new(json_string(&event.name).as_bytes()),
            chain: (event.has_chain() || calls.is_some())
                && !options.hide_call_graph
                && fields.has(Field::Ip),
            arguments: options
                .fields
                .arguments
                .choose(&event.arguments)
                .into_iter()
                .filter_map(|(place, name)| {
                    let name = json_string(name) + ":";
                    let form = Form::new(event.arguments.get(place)?).plain();
                    Some(JsonArgument {
                        place,
                        name: Piece::new(name.as_bytes()),
                        form,
                    })
                })
                .collect(),
        });
        Ok(Self {
            fields,
            times: options.times,
            clock: tod.then(|| WallClock::utc(session)).transpose()?,
            unknown: of_unknown_site(),
            events: events.collect(),
            max_stack: options.max_stack,
            calls,
        })
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct JsonLines<'s> {
    style: &'s JsonStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    pub(crate) resolver: Resolver<'s>,
    chains: CallChains<'s>,
    /// The addresses of a call chain.
    addresses: Vec<ChainAddress>,
    names: Vec<JsonName>,
}

/// A path as text, escaped if it is not UTF-8.
fn escaped_path(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) => text.into(),
        None => escape_bytes(path.as_os_str().as_bytes()),
    }
}

/// Begins a frame.
fn put_address(address: u64, out: &mut Text) {
    out.fixed(b"{\"ip\":\"0x");
    out.hex(address);
    out.byte(b'"');
}

/// The function and the file of an address.
fn put_place(fields: Fields, session: &TraceSession, place: &CodeLocation, out: &mut Text) {
    if fields.has(Field::Sym) {
        out.fixed(b",\"sym\":");
        match &place.symbol {
            Some(symbol) => out.json_string(&symbol.name),
            None => out.fixed(b"null"),
        }
    }
    put_offset_and_file(fields, session, place, out);
}

/// The distance from the start of the function that is not inlined, and its file.
fn put_offset_and_file(
    fields: Fields,
    session: &TraceSession,
    place: &CodeLocation,
    out: &mut Text,
) {
    if let (true, Some(symbol)) = (fields.has(Field::Symoff), &place.symbol) {
        out.fixed(b",\"symoff\":");
        out.unsigned(symbol.offset);
    }
    if fields.has(Field::Dso) {
        out.fixed(b",\"dso\":");
        match place.file.and_then(|file| session.mappings().file(file)) {
            Some(file) => {
                let bytes = file.path.as_os_str().as_bytes();
                match std::str::from_utf8(bytes) {
                    Ok(text) => out.json_string(text),
                    Err(_) => out.json_string(&escape_bytes(bytes)),
                }
            }
            None => out.fixed(b"null"),
        }
    }
}

/// The line of source; `null` if it is not known.
fn put_source(fields: Fields, source: Option<&SourceLine>, out: &mut Text) {
    if fields.has(Field::Srcline) {
        out.fixed(b",\"srcline\":");
        match source {
            Some(source) => out.json_string(&whole_source_text(source)),
            None => out.fixed(b"null"),
        }
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
        match &function.file {
            Some(file) => out.json_string(&escaped_path(file)),
            None => out.fixed(b"null"),
        }
        out.byte(b'}');
    }
    out.byte(b']');
}

impl<'s> JsonLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s JsonStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
            chains: CallChains::new(session, style.max_stack),
            addresses: Vec::new(),
            names: vec![JsonName::default(); NAMES],
        }
    }

    /// Appends a sample's line.
    #[inline]
    pub(crate) fn line(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let Some(event) = self.style.events.get(target.event as usize) else {
            return;
        };
        let fields = self.style.fields;
        let start = out.len();
        let number = |field, key: &[u8], number, out: &mut Text| {
            if fields.has(field) {
                out.bytes(key);
                if event.sampled.has(field) {
                    out.unsigned(number);
                } else {
                    out.fixed(b"null");
                }
            }
        };
        number(Field::Time, b",\"time_ns\":", sample.time, out);
        if self.style.times != TimeOrigin::Clock || self.times_of_day.is_some() {
            self.times(event.sampled, sample, before, out);
        }
        number(Field::Cpu, b",\"cpu\":", sample.cpu.into(), out);
        for (field, key, number) in [
            (Field::Pid, &b",\"pid\":"[..], sample.pid),
            (Field::Tid, b",\"tid\":", sample.tid),
        ] {
            if fields.has(field) {
                out.bytes(key);
                out.signed(i64::from(number));
            }
        }
        if fields.has(Field::Comm) {
            out.fixed(b",\"comm\":");
            self.comm(sample, out);
        }
        for field in fields.process_fields() {
            out.fixed(b",\"");
            out.string(field.name);
            out.fixed(b"\":");
            match self.resolver.process_value(field, sample) {
                Ok(ProcessValue::Number(number)) => out.unsigned(number),
                Ok(text) => out.string(&json_string(text.text().unwrap_or_default())),
                Err(_) => out.fixed(b"null"),
            }
        }
        if fields.has(Field::Event) {
            out.fixed(b",\"event\":");
            out.piece(&event.name);
        }
        if fields.has(Field::Ip) {
            out.fixed(b",\"ip\":\"0x");
            out.hex(sample.ip);
            out.byte(b'"');
        }
        self.place(fields, sample, out);
        if event.chain {
            self.chain(target, sample, out);
        }
        if fields.has(Field::Period) {
            out.fixed(b",\"period\":");
            out.unsigned(self.resolver.session().weight(target, sample));
        }
        if fields.has(Field::Args) {
            self.arguments(event, target, sample, out);
        }
        match out.byte_at(start) {
            Some(comma) => *comma = b'{',
            None => out.byte(b'{'),
        }
        out.fixed(b"}\n");
    }

    /// The time since another line, and the time of day.
    fn times(
        &mut self,
        sampled: Fields,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let Self {
            style,
            times_of_day,
            ..
        } = self;
        if let Some(name) = style.times.name()
            && style.fields.has(Field::Time)
        {
            out.fixed(b",\"");
            out.string(name);
            out.fixed(b"\":");
            if sampled.has(Field::Time) {
                out.since_ns(style.times.difference(sample.time, before));
            } else {
                out.fixed(b"null");
            }
        }
        if let Some(times_of_day) = times_of_day {
            out.fixed(b",\"tod\":");
            if sampled.has(Field::Tod) {
                out.byte(b'"');
                times_of_day.put(sample.time, 9, out);
                out.fixed(b"Z\"");
            } else {
                out.fixed(b"null");
            }
        }
    }

    fn comm(&mut self, sample: &Sample<'_>, out: &mut Text) {
        let Some(id) = self.resolver.name(sample.tid, sample.time) else {
            out.fixed(b"\":");
            out.signed(i64::from(sample.tid));
            return out.byte(b'"');
        };
        let Some(name) = self.names.get_mut(id.0 as usize % NAMES) else {
            return;
        };
        if name.id != Some(id) {
            let processes = self.resolver.session().processes();
            let text = processes.name(id).map_or("", EscapedName::unescaped);
            *name = JsonName {
                id: Some(id),
                text: Piece::new(json_string(text).as_bytes()),
            };
        }
        out.piece(&name.text);
    }

    /// The call chain, and why it is cut.
    fn chain(&mut self, target: SampleTarget, sample: &Sample<'_>, out: &mut Text) {
        if let Some(calls) = &self.style.calls {
            let path = self.resolver.path().unwrap_or_default();
            return script_frames(&calls.functions(path), self.style.max_stack, out);
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        let cut = self.chains.find(target, sample, &mut addresses);
        let cut = self
            .resolver
            .settle_chain(target, sample, &mut addresses, cut);
        out.fixed(b",\"stack\":[");
        for (number, &frame) in addresses.iter().enumerate() {
            if number > 0 {
                out.byte(b',');
            }
            self.frames(sample, frame, out);
        }
        out.byte(b']');
        self.addresses = addresses;
        if let Some(cut) = cut {
            out.fixed(b",\"stack_cut\":");
            out.json_string(&reason(&KnownCut::new(self.resolver.session(), cut)));
        }
    }

    /// The frames of an address: those of inlined functions, and that of the function that they are in.
    fn frames(&mut self, sample: &Sample<'_>, frame: ChainAddress, out: &mut Text) {
        let address = frame.address;
        let fields = self.style.fields;
        let session = self.resolver.session();
        let shows_inlined = session.shows_inlined();
        let (place, found) = match shows_inlined || fields.has(Field::Srcline) {
            true => self.resolver.inlining(sample, frame),
            false => (self.resolver.place_of(sample, frame), None),
        };
        let calls = found.filter(|_| shows_inlined);
        for call in calls.map_or(&[][..], |found| &found.calls) {
            put_address(address, out);
            if fields.has(Field::Sym) {
                out.fixed(b",\"sym\":");
                out.json_string(&call.name);
            }
            put_offset_and_file(fields, session, place, out);
            put_source(fields, call.source.as_ref(), out);
            out.fixed(b",\"inlined\":true},");
        }
        put_address(address, out);
        put_place(fields, session, place, out);
        let source = found.and_then(|found| match shows_inlined {
            true => found.source.as_ref(),
            false => found.innermost(),
        });
        put_source(fields, source, out);
        out.byte(b'}');
    }

    fn place(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Text) {
        let asked = [Field::Sym, Field::Symoff, Field::Dso];
        let session = self.resolver.session();
        if asked.iter().any(|&field| fields.has(field)) {
            put_place(fields, session, self.resolver.place(sample), out);
        }
        if fields.has(Field::Srcline) {
            let (_, found) = self.resolver.inlining_of_hit(sample);
            put_source(fields, found.and_then(FoundInlining::innermost), out);
        }
    }

    #[inline]
    fn arguments(
        &mut self,
        event: &JsonEvent,
        target: SampleTarget,
        sample: &Sample<'_>,
        out: &mut Text,
    ) {
        out.byte(b',');
        let unknown = &self.style.unknown;
        let site = self.resolver.session().site_of(target, sample);
        let values = site.map(|site| self.resolver.values(site, sample));
        let value = |at: usize| values.map_or(Some(unknown), |values| values.get(at));
        put_arguments(&event.arguments, value, out);
    }
}
