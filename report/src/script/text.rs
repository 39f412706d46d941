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
    /// Whether the address stands before the arguments, in brackets.
    address: bool,
    /// Whether the callers follow, one a line.
    chain: bool,
    /// ` NAME=` of each argument, without the blank where nothing stands before it.
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
            // perf shows the address of probes only; where nothing is known of an event, there is nothing else to show.
            let address = event.is_probe || event.arguments.is_empty();
            let fields = event.shown(choice);
            let arguments = event.arguments.iter().enumerate().map(|(at, name)| {
                let blank = if address || at > 0 { " " } else { "" };
                Piece::new(format!("{blank}{}=", escape(name)).as_bytes())
            });
            TextEvent {
                fields,
                name: Piece::new(name.as_slice()),
                address,
                chain: event.has_chain() && fields.has(Field::Ip),
                arguments: arguments.collect(),
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
    /// Whether callers follow; then perf does not align the name.
    chain: bool,
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
        self.head((fields, event.chain), sample, out);
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
            self.arguments(event, target, sample, out);
        }
        if event.chain {
            return self.chain(fields, sample, out);
        }
        if fields.has(Field::Ip) {
            out.byte(b' ');
            out.right_hex(sample.ip);
        }
        if fields.has(Field::Sym) || fields.has(Field::Dso) {
            self.place(fields, sample, sample.ip, out);
        }
        out.byte(b'\n');
    }

    /// The address of the hit and those of its callers, one a line, and an empty line.
    fn chain(&mut self, fields: Fields, sample: &Sample<'_>, out: &mut Text) {
        out.byte(b'\n');
        for address in sample.callers() {
            out.byte(b'\t');
            out.right_hex(address);
            self.place(fields, sample, address, out);
            out.byte(b'\n');
        }
        out.byte(b'\n');
    }

    #[inline]
    fn head(&mut self, (fields, chain): (Fields, bool), sample: &Sample<'_>, out: &mut Text) {
        let slot = sample.tid as usize % HEADS;
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
            *head = Head::new((fields, chain), sample, self.resolver.session());
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
        let weight = self.resolver.session().weight(target, sample);
        out.right(&weight.to_string(), 10);
        out.byte(b' ');
    }

    #[inline]
    fn arguments(
        &mut self,
        event: &TextEvent,
        target: Target,
        sample: &Sample<'_>,
        out: &mut Text,
    ) {
        if event.address {
            out.byte(b'(');
            out.hex(sample.ip);
            out.byte(b')');
        }
        let names = &event.arguments;
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

    fn place(&mut self, fields: Fields, sample: &Sample<'_>, address: u64, out: &mut Text) {
        let session = self.resolver.session();
        let place = self.resolver.place_of(sample, address);
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
    fn new((fields, chain): (Fields, bool), sample: &Sample<'_>, session: &Session) -> Self {
        let processes = session.processes();
        let span = processes.comm(sample.tid, sample.time);
        let mut text = Text::default();
        if fields.has(Field::Comm) {
            let width = if chain { 0 } else { 16 };
            match span.name.and_then(|name| processes.name(name)) {
                Some(name) => text.right(&name.text, width),
                None => text.right(&format!(":{}", sample.tid), width),
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
            chain,
            from: span.from,
            until: span.until,
            text: Piece::new(text.as_slice()),
        }
    }
}
