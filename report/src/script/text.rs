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
use crate::text::{Piece, Text};

/// Threads whose part of the line is remembered.
const HEADS: usize = 256;

/// What is the same in all lines of an event.
#[derive(Debug)]
pub(super) struct TextEvent {
    fields: Fields,
    /// Name, aligned, with `: ` behind it.
    name: Piece,
    /// ` NAME=` of each argument.
    arguments: Vec<Piece>,
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
        let width = events.iter().map(|event| event.name.len()).max();
        let events = events.iter().map(|event| {
            let mut name = Text::default();
            name.right(&escape(&event.name), width.unwrap_or(0));
            name.fixed(b": ");
            let default = if event.probe.is_some() || event.is_tracepoint() {
                Fields::TRACEPOINT
            } else {
                Fields::OTHER
            };
            let arguments = event.arguments.iter();
            TextEvent {
                fields: choice.apply(default),
                name: Piece::new(name.as_slice()),
                arguments: arguments
                    .map(|name| Piece::new(format!(" {}=", escape(name)).as_bytes()))
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
    second: (u64, Piece),
}

/// The first part of the line, while it stays the same: thread and CPU.
#[derive(Clone, Debug, Default)]
struct Head {
    pid: i32,
    tid: i32,
    cpu: u32,
    fields: Fields,
    from: u64,
    until: u64,
    text: Piece,
}

impl<'s> TextLines<'s> {
    pub(super) fn new(session: &'s Session, style: &'s TextStyle) -> Self {
        Self {
            style,
            resolver: Resolver::new(session),
            heads: vec![Head::default(); HEADS],
            second: (u64::MAX, Piece::default()),
        }
    }

    /// Appends a sample's line.
    #[inline]
    pub(super) fn line(&mut self, target: Target, sample: &Sample<'_>, out: &mut Text) {
        let Some(event) = self.style.events.get(target.event as usize) else {
            return;
        };
        let fields = event.fields;
        self.head(fields, sample, out);
        if fields.has(Field::Time) {
            self.time(sample.time, out);
        }
        if fields.has(Field::Period) {
            self.period(target, sample, out);
        }
        if fields.has(Field::Event) {
            out.piece(&event.name);
        }
        if fields.has(Field::Args) {
            self.arguments(&event.arguments, target, sample, out);
        }
        if fields.has(Field::Ip) {
            out.byte(b' ');
            out.right_hex(sample.ip);
        }
        if fields.has(Field::Sym) || fields.has(Field::Dso) {
            self.place(fields, sample, out);
        }
        out.byte(b'\n');
    }

    #[inline]
    fn head(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Text) {
        let slot = sample.tid as usize % HEADS;
        let Some(head) = self.heads.get_mut(slot) else {
            return;
        };
        let known = head.tid == sample.tid
            && head.pid == sample.pid
            && head.cpu == sample.cpu
            && head.fields == fields
            && (head.from..head.until).contains(&sample.time);
        if !known {
            *head = Head::new(fields, sample, self.resolver.session());
        }
        out.piece(&head.text);
    }

    #[inline]
    fn time(&mut self, time: u64, out: &mut Text) {
        let (second, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
        if self.second.0 != second {
            let text = format!("{second:5}.");
            self.second = (second, Piece::new(text.as_bytes()));
        }
        out.piece(&self.second.1);
        if self.style.nanoseconds {
            out.nanoseconds(fraction as u32);
        } else {
            out.microseconds(fraction as u32 / 1000);
        }
    }

    fn period(&self, target: Target, sample: &Sample<'_>, out: &mut Text) {
        let events = &self.resolver.session().events().events;
        let event = events.get(target.event as usize);
        let period = event.map_or(sample.period, |event| event.weight(sample));
        out.right(&period.to_string(), 10);
        out.byte(b' ');
    }

    #[inline]
    fn arguments(&mut self, names: &[Piece], target: Target, sample: &Sample<'_>, out: &mut Text) {
        out.byte(b'(');
        out.hex(sample.ip);
        out.byte(b')');
        let Some(site) = self.resolver.session().site_of(target, sample) else {
            for name in names {
                out.piece(name);
                out.string("<site not known>");
            }
            return;
        };
        let values = self.resolver.values(site, sample);
        for (name, value) in names.iter().zip(values) {
            out.piece(name);
            out.value(value);
        }
    }

    fn place(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Text) {
        let session = self.resolver.session();
        let place = self.resolver.place(sample);
        if fields.has(Field::Sym) {
            out.byte(b' ');
            out.string(&symbol_name(place));
            if let (true, Some(symbol)) = (fields.has(Field::Symoff), &place.symbol) {
                out.fixed(b"+0x");
                out.hex(symbol.offset);
            }
        }
        if fields.has(Field::Dso) {
            out.fixed(b" (");
            out.string(&file_name(session, place));
            out.byte(b')');
        }
    }
}

impl Head {
    #[cold]
    fn new(fields: Fields, sample: &Sample<'_>, session: &Session) -> Self {
        let processes = session.processes();
        let span = processes.comm(sample.tid, sample.time);
        let mut text = Text::default();
        if fields.has(Field::Comm) {
            match span.name.and_then(|name| processes.name(name)) {
                Some(name) => text.right(&name.text, 16),
                None => text.right(&format!(":{}", sample.tid), 16),
            }
            text.byte(b' ');
        }
        text.string(&match (fields.has(Field::Pid), fields.has(Field::Tid)) {
            (true, true) => format!("{:5}/{:<5} ", sample.pid, sample.tid),
            (true, false) => format!("{:5} ", sample.pid),
            (false, true) => format!("{:5} ", sample.tid),
            (false, false) => String::new(),
        });
        if fields.has(Field::Cpu) {
            text.string(&format!("[{:03}] ", sample.cpu));
        }
        Self {
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            fields,
            from: span.from,
            until: span.until,
            text: Piece::new(text.as_slice()),
        }
    }
}
