//! Lines as perf script prints them.
//!
//! ```text
//!         sdt-tick 12459 [001]  3302.307456: sdt_tick:loop1: (55ded7a87110) arg1=0 arg2=140723648136928
//! %16s             %5d [%03d] %5lu.%06lu:    %*s:            (%lx)          name=value
//! ```
//!
//! Of an event that the trace defines no arguments for, the line is what perf prints of its kind.

use std::sync::Arc;

use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::escape::escape;
use usdtrec_format::perf::Sample;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::calls::ScriptCalls;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::site_samples::RawInteger;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::form::Form;
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::EventSite;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;
use usdtrec_trace::symbols::known_inlining::FoundInlining;

use crate::script::call_chain::{LineChains, LineFrame};
use crate::script::options::ScriptOptions;
use crate::script::row_writer::RowWriter;
use crate::script::span_text::{SpanText, put_thread};
use crate::script::text_frames::{put_frame, put_source, script_frames};
use crate::script::times::{TextTimes, TimeOrigin, TimesOfDay, WallClock};
use crate::text::buffer::{Piece, Text};

/// Maximum width of the column of events.
const MAX_EVENT_COLUMNS: usize = 256;
/// Threads, each on a CPU, whose part of the line is kept.
const HEADS: usize = 256;

/// Settings for all lines of an event.
#[derive(Debug)]
pub(crate) struct TextEvent {
    fields: Fields,
    /// The fields that are kept for each thread.
    head: Fields,
    /// Name, aligned, and `: `.
    name: Piece,
    /// Whether the address is before the arguments, in parentheses; `-F -ip` leaves it out.
    address: bool,
    /// Whether the callers follow, one a line.
    chain: bool,
    arguments: Vec<StringArgument>,
}

/// An argument that is shown.
#[derive(Debug)]
struct StringArgument {
    /// Its place among the event's.
    place: usize,
    /// Whether it was added to those of the probe: without a value it is not shown.
    is_added: bool,
    /// ` NAME=`, without the blank where it is the first.
    name: Piece,
    /// How its values are shown.
    form: Form,
}

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct TextStyle {
    events: Vec<TextEvent>,
    spans: SpanText,
    times: TextTimes,
    clock: Option<WallClock>,
    max_stack: Option<usize>,
    /// If the functions of scripts are shown in place of call chains.
    pub(crate) calls: Option<Arc<ScriptCalls>>,
}

impl TextStyle {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let ScriptOptions {
            fields: ref choice,
            times,
            max_stack,
            hide_call_graph,
            hide_address,
            ..
        } = *options;
        let calls = options.calls(session)?;
        let tod = choice.apply(Fields::TRACEPOINT).has(Field::Tod);
        let events = &session.events().events;
        let width = events.iter().map(|event| event.name.len()).max();
        let width = width.unwrap_or(0).min(MAX_EVENT_COLUMNS);
        let events = events.iter().map(|event| {
            let mut name = Text::default();
            name.right(&escape(&event.name), width);
            name.fixed(b": ");
            // perf shows the address of probes only; where nothing is known of an event, there is nothing else to show.
            let address = (event.is_probe || event.arguments.is_empty())
                && !choice.arguments.is_list()
                && !choice.removes(Field::Ip)
                && (!hide_address || choice.asks_for(Field::Ip));
            let chain = (event.has_chain() || calls.is_some()) && !hide_call_graph;
            let fields = choice.of_event(event, chain);
            let mut blank = if address { " " } else { "" };
            let arguments = choice.arguments.shown(&event.arguments).into_iter();
            let arguments = arguments.map(|argument| {
                let name = format!("{blank}{}=", escape(&argument.name));
                blank = " ";
                StringArgument {
                    place: argument.place,
                    is_added: argument.place >= event.own_arguments().len(),
                    name: Piece::new(name.as_bytes()),
                    form: argument.form,
                }
            });
            let head = if fields.has(Field::Tod) || times != TimeOrigin::Clock {
                fields.without(Fields::from_slice(&[Field::Time, Field::Tod]))
            } else {
                fields
            };
            TextEvent {
                fields,
                head,
                name: Piece::new(name.as_slice()),
                address,
                chain: chain && fields.has(Field::Ip),
                arguments: arguments.collect(),
            }
        });
        Ok(Self {
            events: events.collect(),
            spans: SpanText::new(session, pairs, options),
            times: options.text_times(),
            clock: tod.then(|| WallClock::local(session)).transpose()?,
            max_stack,
            calls,
        })
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct TextLines<'s> {
    style: &'s TextStyle,
    resolver: Resolver<'s>,
    chains: LineChains<'s>,
    times_of_day: Option<TimesOfDay<'s>>,
    heads: Vec<Head>,
    /// Of each site, the last one.
    middles: Vec<Middle>,
}

/// The first part of the line, while it stays the same: thread, CPU, and the second.
#[derive(Clone, Debug, Default)]
struct Head {
    pid: i32,
    tid: i32,
    cpu: u32,
    fields: Fields,
    /// Whether callers follow; then perf does not align the name.
    chain: bool,
    /// Times for which it is right, ns.
    from: u64,
    until: u64,
    second: u64,
    text: Piece,
}

/// The part of the line from the event to the name of the first argument, while the address stays the same.
#[derive(Clone, Debug, Default)]
struct Middle {
    ip: Option<u64>,
    text: Piece,
    /// Where the arguments that are shown are in samples, if all are plain integers there.
    integers: Option<Vec<RawInteger>>,
}

const SECOND: u64 = 1_000_000_000;

impl<'s> TextLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s TextStyle) -> Self {
        Self {
            style,
            resolver: Resolver::new(session),
            chains: LineChains::new(session, style.max_stack),
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            heads: vec![Head::default(); HEADS],
            middles: vec![Middle::default(); session.events().sites.len()],
        }
    }

    /// The fields about the process that are requested.
    fn process_fields(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Text) {
        for field in fields.process_fields() {
            out.byte(b' ');
            match self.resolver.process_value(field, sample) {
                Ok(ProcessValue::Number(number)) => out.unsigned(number),
                Ok(text) => out.string(text.escaped().unwrap_or_default()),
                Err(missing) => out.string(missing),
            }
        }
    }

    /// The address of the hit and those of its callers, one a line, why there are no more of them, and an empty line.
    fn chain(&mut self, fields: Fields, hit: Hit<'_>, out: &mut Text) {
        out.byte(b'\n');
        let style = self.style;
        if let Some(calls) = &style.calls {
            let path = self.resolver.path().unwrap_or_default();
            return script_frames(&calls.functions(path), style.max_stack, out);
        }
        let session = self.resolver.session();
        let resolver = &mut self.resolver;
        let cut = self.chains.each(resolver, fields, hit, |frame| {
            out.byte(b'\t');
            out.right_hex(frame.address);
            put_frame(fields, session, frame, out);
            out.byte(b'\n');
        });
        if let Some(cut) = cut {
            out.fixed(b"\t[cut: ");
            out.string(&cut);
            out.fixed(b"]\n");
        }
        out.byte(b'\n');
    }

    /// Thread, CPU and time.
    #[inline]
    fn head(&mut self, fields: Fields, chain: bool, sample: &Sample<'_>, out: &mut Text) {
        // Threads move from CPU to CPU.
        let slot = (sample.tid as usize).wrapping_add(sample.cpu as usize * 37) % HEADS;
        let Some(head) = self.heads.get_mut(slot) else {
            return;
        };
        let known = head.tid == sample.tid
            && head.pid == sample.pid
            && head.cpu == sample.cpu
            && head.fields == fields
            && head.chain == chain
            && (head.from..head.until).contains(&sample.time);
        if !known {
            *head = Head::new(fields, chain, sample, self.resolver.session());
        }
        out.piece(&head.text);
        if fields.has(Field::Time) {
            let fraction = sample.time.wrapping_sub(head.second) as u32;
            if self.style.times.digits == 9 {
                out.nanoseconds(fraction);
            } else {
                out.microseconds(fraction / 1000);
            }
        }
    }

    /// Event, address and arguments.
    #[inline]
    fn middle_and_arguments(
        &mut self,
        event: &TextEvent,
        site: usize,
        sample: &Sample<'_>,
        out: &mut Text,
    ) {
        let Some(middle) = self.middles.get_mut(site) else {
            return;
        };
        if middle.ip != Some(sample.ip) {
            let arguments = self.resolver.argument_count(site);
            *middle = event.middle(sample.ip, arguments);
            let sites = &self.resolver.session().events().sites;
            middle.integers = sites.get(site).and_then(|site| event.integers(site));
        }
        out.piece(&middle.text);
        if !event.fields.has(Field::Args) {
            return;
        }
        if let Some(integers) = &middle.integers {
            for (number, (argument, integer)) in event.arguments.iter().zip(integers).enumerate() {
                if number > 0 {
                    out.piece(&argument.name);
                }
                if let Some(integer) = integer.read(sample.raw) {
                    out.integer(integer);
                } else if let Some(value) = self.resolver.value(site, argument.place, sample) {
                    out.formed(&argument.form, value);
                }
            }
            return;
        }
        let values = self.resolver.values(site, sample);
        // The first one's name is in the middle.
        let mut named = event
            .first(values.len())
            .is_some_and(|first| !first.is_added);
        for argument in &event.arguments {
            let Some(value) = values.get(argument.place) else {
                continue;
            };
            if argument.is_added && *value == Value::Missing(Missing::Absent) {
                continue;
            }
            if !std::mem::take(&mut named) {
                out.piece(&argument.name);
            }
            out.formed(&argument.form, value);
        }
    }

    fn period(&self, target: SampleTarget, sample: &Sample<'_>, out: &mut Text) {
        let weight = self.resolver.session().weight(target, sample);
        out.right(&weight.to_string(), 10);
        out.byte(b' ');
    }
}

impl<'s> RowWriter<'s> for TextLines<'s> {
    fn resolver(&mut self) -> &mut Resolver<'s> {
        &mut self.resolver
    }

    #[inline]
    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text) {
        let Hit { target, sample } = hit;
        let Some(event) = self.style.events.get(target.event as usize) else {
            return;
        };
        let fields = event.fields;
        self.head(event.head, event.chain, sample, out);
        if event.head != fields {
            let times_of_day = &mut self.times_of_day;
            (self.style.times).put(fields, sample.time, before, times_of_day, out);
        }
        if fields.has(Field::Period) {
            self.period(target, sample, out);
        }
        match self.resolver.session().site_of(target, sample) {
            Some(site) => self.middle_and_arguments(event, site, sample, out),
            None => event.without_site(sample, out),
        }
        if event.chain {
            self.process_fields(fields, sample, out);
            return self.chain(fields, hit, out);
        }
        if fields.has(Field::Ip) {
            out.byte(b' ');
            out.right_hex(sample.ip);
        }
        if fields.has(Field::Sym) || fields.has(Field::Dso) {
            let session = self.resolver.session();
            let frame = LineFrame::new(sample.ip, self.resolver.place(sample), None);
            put_frame(fields, session, &frame, out);
        }
        if fields.has(Field::Srcline) {
            let (_, found) = self.resolver.inlining_of_hit(sample);
            put_source(fields, found.and_then(FoundInlining::innermost), out);
        }
        self.process_fields(fields, sample, out);
        out.byte(b'\n');
    }

    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text) {
        let session = self.resolver.session();
        let times_of_day = &mut self.times_of_day;
        self.style
            .spans
            .line(session, span, before, times_of_day, out);
    }
}

impl TextEvent {
    /// Event and address.
    fn start(&self, ip: u64, out: &mut Text) {
        if self.fields.has(Field::Event) {
            out.piece(&self.name);
        }
        if self.fields.has(Field::Args) && self.address {
            out.byte(b'(');
            out.hex(ip);
            out.byte(b')');
        }
    }

    /// Event and address, and the name of the first argument of a site that has so many.
    #[cold]
    fn middle(&self, ip: u64, arguments: usize) -> Middle {
        let mut text = Text::default();
        self.start(ip, &mut text);
        if let Some(first) = self.first(arguments)
            && !first.is_added
            && self.fields.has(Field::Args)
        {
            text.piece(&first.name);
        }
        Middle {
            ip: Some(ip),
            text: Piece::new(text.as_slice()),
            integers: None,
        }
    }

    /// Where the arguments that are shown are in samples of a site, if all are plain integers there.
    fn integers(&self, site: &EventSite) -> Option<Vec<RawInteger>> {
        let shown = self.arguments.iter();
        let integers = shown.map(|shown| match (shown.is_added, &shown.form) {
            (false, Form::Plain) => site.decoder.raw_integer(shown.place),
            _ => None,
        });
        integers.collect()
    }

    /// The first argument that is shown of a site that has so many.
    fn first(&self, arguments: usize) -> Option<&StringArgument> {
        let mut shown = self.arguments.iter();
        shown.find(|shown| shown.place < arguments)
    }

    /// Event, address and arguments of a sample whose site, and with it the arguments, is not known.
    fn without_site(&self, sample: &Sample<'_>, out: &mut Text) {
        self.start(sample.ip, out);
        if self.fields.has(Field::Args) {
            for argument in &self.arguments {
                out.piece(&argument.name);
                out.string("<site not known>");
            }
        }
    }
}

impl Head {
    #[cold]
    fn new(fields: Fields, chain: bool, sample: &Sample<'_>, session: &TraceSession) -> Self {
        let processes = session.processes();
        let span = processes.comm(sample.tid, sample.time);
        let mut text = Text::default();
        let name = processes.name_or_number(span.name, sample.tid);
        let width = if chain { 0 } else { 16 };
        put_thread(fields, width, &name, [sample.pid, sample.tid], &mut text);
        if fields.has(Field::Cpu) {
            text.string(&format!("[{:03}] ", sample.cpu));
        }
        let seconds = sample.time / SECOND;
        let second = seconds * SECOND;
        let (mut from, mut until) = (span.from, span.until);
        if fields.has(Field::Time) {
            text.string(&format!("{seconds:5}."));
            from = from.max(second);
            until = until.min(second.saturating_add(SECOND));
        }
        Self {
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            fields,
            chain,
            from,
            until,
            second,
            text: Piece::new(text.as_slice()),
        }
    }
}
