//! Trace Event Format: JSON of `chrome://tracing`, which Perfetto and other viewers read.
//!
//! | row | event |
//! |---|---|
//! | span | `X` with `dur`; `b` and `e` with an `id` if it does not nest with others of its thread, ends on another thread, or has no end (`b` alone) |
//! | event of no span | `i` |
//! | names | `M` |
//!
//! Times are microseconds with three digits after the point, which are nanoseconds of the trace's clock. `args` of an event has the members of
//! `script --format json` from `args` on (and `stack`); that of a span has them in `begin` and `end`. Integers beyond ±2^53 are strings: viewers read numbers as
//! floats.

use std::io::{self, Write};

use crate::analysis::origin::Origin;
use crate::analysis::rows::hit_row::{HitRow, RowHit};
use crate::analysis::rows::row_sink::{RowSide, RowSink, SpanClose, SpanFate, SpanRow};
use crate::analysis::rows::row_walk::RowWalk;
use crate::stats::keys::stacks::Stacks;
use crate::trace::form::Form;
use crate::trace::session::TraceSession;
use crate::view::export::lanes::Lanes;
use crate::view::export::thread_names::{NewNames, ThreadNames};
use crate::view::frames::{cut_text, frame_text};
use crate::view::json_arguments::{JsonArgument, JsonIntegers, put_arguments};
use crate::view::text::buffer::{Piece, Text};
use crate::view::text::quoted::json_string;

/// Bytes that are written at once.
const WRITE: usize = 256 << 10;

/// Writes the format.
pub(crate) struct ChromeTrace<'a> {
    session: &'a TraceSession,
    out: &'a mut dyn Write,
    text: Text,
    events: Vec<ChromeEvent>,
    /// Names of the pairs of probes as JSON strings.
    pairs: Vec<Piece>,
    names: ThreadNames,
    lanes: Lanes,
    stacks: Stacks,
    /// Spans that are not on the track of a thread.
    ids: u64,
}

/// What is the same in all rows of an event.
struct ChromeEvent {
    /// The name as a JSON string.
    name: Piece,
    arguments: Vec<JsonArgument>,
}

/// The time, the process and the thread of an event.
#[derive(Clone, Copy)]
struct Moment {
    phase: u8,
    time: u64,
    pid: i32,
    tid: i32,
}

impl<'a> ChromeTrace<'a> {
    /// Writes the head.
    pub(crate) fn new(
        session: &'a TraceSession,
        walk: &RowWalk<'_>,
        out: &'a mut dyn Write,
    ) -> io::Result<Self> {
        let events = session.events().events.iter().map(|event| ChromeEvent {
            name: Piece::new(json_string(&event.name).as_bytes()),
            arguments: (0..)
                .zip(&event.arguments)
                .map(|(place, argument)| JsonArgument {
                    place,
                    name: Piece::new((json_string(&argument.name) + ":").as_bytes()),
                    form: Form::new(argument).human(false),
                })
                .collect(),
        });
        let pairs = walk.pairs.iter();
        let pairs = pairs.map(|pair| Piece::new(json_string(&pair.name).as_bytes()));
        let mut trace = Self {
            session,
            out,
            text: Text::default(),
            events: events.collect(),
            pairs: pairs.collect(),
            names: ThreadNames::default(),
            lanes: Lanes::default(),
            stacks: Stacks::default(),
            ids: 0,
        };
        trace.head();
        Ok(trace)
    }

    fn head(&mut self) {
        let origin = Origin::new(self.session);
        let text = &mut self.text;
        text.string("{\"displayTimeUnit\":\"ns\",\"otherData\":{");
        for (key, value) in [
            ("host", &origin.host),
            ("machine", &origin.machine),
            ("kernel", &origin.kernel),
            ("producer", &origin.producer),
        ] {
            text.string(&json_string(key));
            text.byte(b':');
            text.json_string(value);
            text.byte(b',');
        }
        text.string("\"lost_events\":\"");
        text.unsigned(origin.lost);
        text.string("\"},\"traceEvents\":[");
    }

    /// Writes the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        // There is no event after the last one's comma.
        if self.text.as_slice().last() == Some(&b',') {
            self.text.drop_last(1);
        }
        self.text.string("\n]}\n");
        self.out.write_all(self.text.as_slice())
    }

    /// Writes what is complete. An event keeps its comma back, because the last one has none.
    fn flush(&mut self) -> io::Result<()> {
        if self.text.len() < WRITE {
            return Ok(());
        }
        self.text.drop_last(1);
        self.out.write_all(self.text.as_slice())?;
        self.text.clear();
        self.text.byte(b',');
        Ok(())
    }

    fn name_thread(&mut self, row: &HitRow) {
        let Some(NewNames {
            process,
            thread,
            cgroup,
        }) = self.names.see(self.session, row)
        else {
            return;
        };
        for (kind, member, name) in [
            ("process_name", "name", process),
            ("process_labels", "labels", cgroup),
            ("thread_name", "name", thread),
        ] {
            let Some(name) = name else {
                continue;
            };
            self.text.string("\n{\"ph\":\"M\",\"name\":\"");
            self.text.string(kind);
            self.text.string("\",\"pid\":");
            self.text.signed(row.pid.into());
            self.text.string(",\"tid\":");
            self.text.signed(row.tid.into());
            self.text.string(",\"args\":{\"");
            self.text.string(member);
            self.text.string("\":");
            self.text.json_string(name);
            self.text.string("}},");
        }
    }

    fn begin_event(&mut self, name: Option<&Piece>, category: &[u8], at: Moment) {
        let text = &mut self.text;
        text.fixed(b"\n{\"ph\":\"");
        text.byte(at.phase);
        text.fixed(b"\",\"name\":");
        match name {
            Some(name) => text.piece(name),
            None => text.fixed(b"\"\""),
        }
        text.fixed(b",\"cat\":\"");
        text.bytes(category);
        text.fixed(b"\",\"ts\":");
        microseconds(at.time, text);
        text.fixed(b",\"pid\":");
        text.signed(at.pid.into());
        text.fixed(b",\"tid\":");
        text.signed(at.tid.into());
    }

    /// Appends the members of `args` of a hit.
    fn hit(&mut self, hit: RowHit<'_>) {
        let text = &mut self.text;
        text.fixed(b"\"cpu\":");
        match hit.row.cpu {
            Some(cpu) => text.unsigned(cpu.into()),
            None => text.fixed(b"null"),
        }
        if let Some(event) = self.events.get(hit.row.event) {
            text.fixed(b",\"event\":");
            text.piece(&event.name);
            text.byte(b',');
            let value = |place: usize| hit.values.get(place);
            put_arguments(&event.arguments, value, JsonIntegers::ExactOrStrings, text);
        }
        if !hit.stack.is_empty() {
            self.stack(hit);
        }
    }

    fn stack(&mut self, hit: RowHit<'_>) {
        let stack = self.stacks.names(hit.stack, self.session);
        let text = &mut self.text;
        text.fixed(b",\"stack\":[");
        let frames = stack.frames.iter().map(frame_text);
        for (at, frame) in frames.chain(stack.cut.iter().map(cut_text)).enumerate() {
            if at > 0 {
                text.byte(b',');
            }
            text.json_string(&frame);
        }
        text.byte(b']');
    }
}

impl RowSink for ChromeTrace<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        if side == RowSide::OfSpan {
            return Ok(());
        }
        self.name_thread(hit.row);
        let name = self.events.get(hit.row.event);
        let name = name.map(|event| event.name.clone());
        self.begin_event(name.as_ref(), b"event", moment(b'i', hit.row));
        self.text.fixed(b",\"s\":\"t\",\"args\":{");
        self.hit(hit);
        if side == RowSide::NoBegin {
            self.text.string(",\"span\":\"its begin is not known\"");
        }
        self.text.fixed(b"}},");
        self.flush()
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let begin = span.begin.row;
        self.name_thread(begin);
        if let Some(end) = span.end {
            self.name_thread(end.hit.row);
        }
        let name = self.pairs.get(span.pair).cloned();
        let end = span.end.map(|end| end.hit.row);
        let same = end.is_none_or(|end| (end.pid, end.tid) == (begin.pid, begin.tid));
        let end_time = span.end_time();
        let nests =
            same && end_time.is_some_and(|end| self.lanes.nests(begin.tid, begin.time, end));
        if nests {
            self.begin_event(name.as_ref(), b"span", moment(b'X', begin));
            self.text.fixed(b",\"dur\":");
            let duration = end_time.map_or(0, |end| end.saturating_sub(begin.time));
            microseconds(duration, &mut self.text);
        } else {
            self.ids += 1;
            self.begin_event(name.as_ref(), b"span", moment(b'b', begin));
            self.id();
        }
        self.text.fixed(b",\"args\":{\"begin\":{");
        self.hit(span.begin);
        self.text.byte(b'}');
        match span.fate {
            SpanFate::Ended => {}
            SpanFate::Unfinished => self.text.string(",\"end\":\"unfinished\""),
            SpanFate::Open => self.text.string(",\"end\":\"open\""),
        }
        if let Some(SpanClose { hit, own, .. }) = span.end {
            if !nests {
                self.text.fixed(b"}},");
                self.begin_event(name.as_ref(), b"span", moment(b'e', hit.row));
                self.id();
                self.text.fixed(b",\"args\":{");
            } else {
                self.text.byte(b',');
            }
            self.text.fixed(b"\"end\":{");
            self.hit(hit);
            self.text.fixed(b"},\"self_ns\":");
            self.text.unsigned(own);
        } else if let Some(until) = span.until.filter(|_| !nests) {
            self.text.fixed(b"}},");
            let latest = Moment {
                time: until,
                ..moment(b'e', begin)
            };
            self.begin_event(name.as_ref(), b"span", latest);
            self.id();
            self.text.fixed(b",\"args\":{");
        }
        self.text.fixed(b"}},");
        self.flush()
    }
}

impl ChromeTrace<'_> {
    fn id(&mut self) {
        self.text.fixed(b",\"id\":\"0x");
        self.text.hex(self.ids);
        self.text.byte(b'"');
    }
}

const fn moment(phase: u8, row: &HitRow) -> Moment {
    Moment {
        phase,
        time: row.time,
        pid: row.pid,
        tid: row.tid,
    }
}

/// Appends nanoseconds as microseconds.
fn microseconds(ns: u64, out: &mut Text) {
    out.unsigned(ns / 1000);
    out.byte(b'.');
    out.fraction((ns % 1000 * 1_000_000) as u32, 3);
}
