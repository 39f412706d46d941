//! Lines as perf script prints them.
//!
//! ```text
//!         sdt-tick 12459 [001]  3302.307456: sdt_tick:loop1: (55ded7a87110) arg1=0 arg2=140723648136928
//! %16s             %5d [%03d] %5lu.%06lu:    %*s:            (%lx)          name=value
//! ```
//!
//! Of an event that the trace defines no arguments for, the line is what perf prints of its kind.

use usdtrec_format::escape::escape;
use usdtrec_format::perf::Sample;

use super::fields::{Field, FieldChoice, Fields};
use super::place::{file_name, symbol_name};
use crate::session::{Resolver, Session, Target};
use crate::text::{hex, padded, text_value, unsigned, zero_padded};

/// Threads whose part of the line is remembered.
const HEADS: usize = 256;

/// What is the same in all lines of an event.
#[derive(Debug)]
pub(super) struct TextEvent {
    fields: Fields,
    /// Name, aligned, with `: ` behind it.
    name: Vec<u8>,
    /// ` NAME=` of each argument.
    arguments: Vec<Vec<u8>>,
}

/// What is the same in all lines of a trace.
#[derive(Debug)]
pub(super) struct TextStyle {
    events: Vec<TextEvent>,
    nanoseconds: bool,
}

impl TextStyle {
    pub(super) fn new(session: &Session, choice: &FieldChoice, nanoseconds: bool) -> Self {
        let events = &session.events().events;
        let width = events
            .iter()
            .map(|event| event.name.len())
            .max()
            .unwrap_or(0);
        let events = events.iter().map(|event| {
            let mut name = Vec::new();
            padded(&mut name, &escape(&event.name), width);
            name.extend_from_slice(b": ");
            let default = if event.probe.is_some() || event.is_tracepoint() {
                Fields::TRACEPOINT
            } else {
                Fields::OTHER
            };
            TextEvent {
                fields: choice.apply(default),
                name,
                arguments: event
                    .arguments
                    .iter()
                    .map(|name| format!(" {}=", escape(name)).into_bytes())
                    .collect(),
            }
        });
        Self {
            events: events.collect(),
            nanoseconds,
        }
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(super) struct TextLines<'s> {
    style: &'s TextStyle,
    resolver: Resolver<'s>,
    heads: Vec<Head>,
    /// The last second and its text.
    second: (u64, Vec<u8>),
}

/// A thread's part of the line, while its name stays the same.
#[derive(Clone, Debug, Default)]
struct Head {
    pid: i32,
    tid: i32,
    fields: Fields,
    from: u64,
    until: u64,
    text: Vec<u8>,
}

impl<'s> TextLines<'s> {
    pub(super) fn new(session: &'s Session, style: &'s TextStyle) -> Self {
        Self {
            style,
            resolver: Resolver::new(session),
            heads: vec![Head::default(); HEADS],
            second: (u64::MAX, Vec::new()),
        }
    }

    /// Appends a sample's line.
    #[inline]
    pub(super) fn line(&mut self, target: Target, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let Some(event) = self.style.events.get(target.event as usize) else {
            return;
        };
        let fields = event.fields;
        out.extend_from_slice(self.head(fields, sample));
        if fields.has(Field::Cpu) {
            cpu(out, sample.cpu);
        }
        if fields.has(Field::Time) {
            self.time(out, sample.time);
        }
        if fields.has(Field::Period) {
            padded(out, itoa::Buffer::new().format(sample.period), 10);
            out.push(b' ');
        }
        if fields.has(Field::Event) {
            out.extend_from_slice(&event.name);
        }
        if fields.has(Field::Args) {
            self.arguments(event, target, sample, out);
        }
        if fields.has(Field::Ip) {
            out.push(b' ');
            right_hex(out, sample.ip);
        }
        if fields.has(Field::Sym) || fields.has(Field::Dso) {
            self.place(fields, sample, out);
        }
        out.push(b'\n');
    }

    #[inline]
    fn head(&mut self, fields: Fields, sample: &Sample<'_>) -> &[u8] {
        let slot = sample.tid as usize % HEADS;
        let head = &mut self.heads[slot];
        let known = head.tid == sample.tid
            && head.pid == sample.pid
            && head.fields == fields
            && (head.from..head.until).contains(&sample.time);
        if !known {
            head.fill(fields, sample, self.resolver.session());
        }
        &head.text
    }

    #[inline]
    fn time(&mut self, out: &mut Vec<u8>, time: u64) {
        let (second, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
        if self.second.0 != second {
            self.second.0 = second;
            self.second.1.clear();
            padded(&mut self.second.1, itoa::Buffer::new().format(second), 5);
            self.second.1.push(b'.');
        }
        out.extend_from_slice(&self.second.1);
        if self.style.nanoseconds {
            out.push(b'0' + (fraction / 100_000_000) as u8);
            zero_padded::<8>(out, fraction % 100_000_000);
        } else {
            zero_padded::<6>(out, fraction / 1000);
        }
        out.extend_from_slice(b": ");
    }

    #[inline]
    fn arguments(
        &mut self,
        event: &TextEvent,
        target: Target,
        sample: &Sample<'_>,
        out: &mut Vec<u8>,
    ) {
        if event.fields.has(Field::Args) {
            out.push(b'(');
            hex(out, sample.ip);
            out.push(b')');
        }
        let Some(site) = self.resolver.session().site_of(target, sample) else {
            for name in &event.arguments {
                out.extend_from_slice(name);
                out.extend_from_slice(b"<site not known>");
            }
            return;
        };
        let values = self.resolver.values(site, sample);
        for (name, value) in event.arguments.iter().zip(values) {
            out.extend_from_slice(name);
            text_value(out, value);
        }
    }

    fn place(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let session = self.resolver.session();
        let place = self.resolver.place(sample);
        if fields.has(Field::Sym) {
            out.push(b' ');
            out.extend_from_slice(symbol_name(place).as_bytes());
            if let (true, Some(symbol)) = (fields.has(Field::Symoff), &place.symbol) {
                out.extend_from_slice(b"+0x");
                hex(out, symbol.offset);
            }
        }
        if fields.has(Field::Dso) {
            out.extend_from_slice(b" (");
            out.extend_from_slice(file_name(session, place).as_bytes());
            out.push(b')');
        }
    }
}

impl Head {
    #[cold]
    fn fill(&mut self, fields: Fields, sample: &Sample<'_>, session: &Session) {
        let processes = session.processes();
        let span = processes.comm(sample.tid, sample.time);
        self.pid = sample.pid;
        self.tid = sample.tid;
        self.fields = fields;
        self.from = span.from;
        self.until = span.until;
        self.text.clear();
        if fields.has(Field::Comm) {
            match span.name.and_then(|name| processes.name(name)) {
                Some(name) => padded(&mut self.text, &name.text, 16),
                None => padded(&mut self.text, &format!(":{}", sample.tid), 16),
            }
            self.text.push(b' ');
        }
        let ids = match (fields.has(Field::Pid), fields.has(Field::Tid)) {
            (true, true) => format!("{:5}/{:<5} ", sample.pid, sample.tid),
            (true, false) => format!("{:5} ", sample.pid),
            (false, true) => format!("{:5} ", sample.tid),
            (false, false) => String::new(),
        };
        self.text.extend_from_slice(ids.as_bytes());
    }
}

#[inline]
fn cpu(out: &mut Vec<u8>, cpu: u32) {
    out.push(b'[');
    if cpu < 1000 {
        out.push(b'0' + (cpu / 100) as u8);
        zero_padded::<2>(out, u64::from(cpu % 100));
    } else {
        unsigned(out, u64::from(cpu));
    }
    out.extend_from_slice(b"] ");
}

/// Hexadecimal, right-aligned in 16 bytes.
fn right_hex(out: &mut Vec<u8>, number: u64) {
    let digits = (67 - (number | 1).leading_zeros() as usize) / 4;
    out.extend(std::iter::repeat_n(b' ', 16 - digits));
    hex(out, number);
}
