//! Perfetto's trace format: `TracePacket`s of track events.
//!
//! | row | packets |
//! |---|---|
//! | span | slice on the track of its thread; on a track of its own below it if it does not nest with others of the thread, ends on another thread, or has no end (then the slice has none) |
//! | span that ends on another thread | besides, an instant there, with a flow from the slice |
//! | event of no span | instant |
//!
//! A process has its control group as a label.
//!
//! Annotations: `args.NAME` of the begin or the event, `end.NAME` of the end, `cpu`, `self_ns`; as in JSON `missing.NAME` (reasons), `cut.NAME`, `bytes.NAME`
//! (hexadecimal, of strings that are not UTF-8), `numbers.NAME`, all of the begin, and `end_missing.NAME` and so on of the end; `span` where begin or
//! end is not known. Times are nanoseconds of the trace's clock.

pub(crate) mod annotations;
pub(crate) mod callstacks;
pub(crate) mod fields;
pub(crate) mod tracks;

use std::io::{self, Write};

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanClose, SpanFate, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::wall_times::WallTimes;

use crate::lanes::Lanes;
use crate::perfetto::annotations::{AnnotationNames, Side};
use crate::perfetto::callstacks::CallstackIds;
use crate::perfetto::fields::{
    SEQUENCE, clock, clock_snapshot, defaults, event_type, interned, name, packet, snapshot,
    track_event,
};
use crate::perfetto::tracks::Tracks;
use crate::protobuf::Proto;

/// Bytes that are written at once.
const WRITE: usize = 256 << 10;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`.
const NEEDS_STATE: u64 = 2;
/// Categories: spans, events.
const CATEGORIES: [&str; 2] = ["span", "event"];

/// Writes the format.
pub(crate) struct PerfettoTrace<'a> {
    session: &'a TraceSession,
    out: &'a mut dyn Write,
    proto: Proto,
    names: AnnotationNames,
    /// Number of the name of the first pair; that of the first event is 1.
    first_pair: u64,
    tracks: Tracks,
    lanes: Lanes,
    stacks: CallstackIds,
    flows: u64,
}

/// A track event without its annotations.
#[derive(Clone, Copy)]
struct EventHead {
    kind: u64,
    time: u64,
    track: u64,
    /// Number of its name; 0 for ends.
    name: u64,
    category: u64,
    flow: Option<(u32, u64)>,
}

impl<'a> PerfettoTrace<'a> {
    /// Writes what comes before all rows.
    pub(crate) fn new(
        session: &'a TraceSession,
        walk: &RowWalk<'_>,
        names: AnnotationNames,
        out: &'a mut dyn Write,
    ) -> Self {
        let mut trace = Self {
            session,
            out,
            proto: Proto::default(),
            names,
            first_pair: session.events().events.len() as u64 + 1,
            tracks: Tracks::default(),
            lanes: Lanes::default(),
            stacks: CallstackIds::default(),
            flows: 0,
        };
        trace.clocks();
        trace.intern(walk);
        trace
    }

    /// The clock of the trace's times, and the time of day at one moment of it and around each step of the wall clock.
    fn clocks(&mut self) {
        let Some(known) = self.session.info().clock else {
            return;
        };
        let Some(id) = clock_of(known.id) else {
            return;
        };
        let turns = self.session.wall_times().map(WallTimes::turns);
        match turns {
            None => self.clock_snapshot(id, known.clock_ns, None),
            Some(turns) => {
                for turn in turns {
                    let wall = (id != clock::REALTIME).then_some(turn.wall_ns);
                    self.clock_snapshot(id, turn.clock_ns, wall);
                }
            }
        }
    }

    /// A moment of the trace's clock, and its time of day.
    fn clock_snapshot(&mut self, id: u64, time: u64, wall: Option<u64>) {
        self.proto.message(packet::SELF, |sent| {
            sent.unsigned(packet::SEQUENCE_ID, SEQUENCE);
            sent.message(packet::CLOCK_SNAPSHOT, |taken| {
                let mut put = |id: u64, time: u64| {
                    taken.message(clock_snapshot::CLOCKS, |one| {
                        one.unsigned(snapshot::CLOCK_ID, id);
                        one.unsigned(snapshot::TIMESTAMP, time);
                    });
                };
                put(id, time);
                if let Some(wall) = wall {
                    put(clock::REALTIME, wall);
                }
                taken.unsigned(clock_snapshot::PRIMARY, id);
            });
        });
    }

    /// All names, and the clock of what follows.
    fn intern(&mut self, walk: &RowWalk<'_>) {
        let events = self.session.events().events.iter();
        let events = events.map(|event| event.name.as_str());
        let pairs = walk.pairs.iter().map(|pair| pair.name.as_str());
        let clock = self.session.info().clock;
        let clock = clock.and_then(|clock| clock_of(clock.id));
        let names = &self.names;
        self.proto.message(packet::SELF, |sent| {
            sent.unsigned(packet::SEQUENCE_ID, SEQUENCE);
            sent.unsigned(packet::SEQUENCE_FLAGS, CLEARED);
            sent.message(packet::DEFAULTS, |all| {
                if let Some(clock) = clock {
                    all.unsigned(defaults::CLOCK_ID, clock);
                }
            });
            sent.message(packet::INTERNED, |data| {
                for (number, text) in (1..).zip(CATEGORIES) {
                    put_name(data, interned::CATEGORIES, number, text);
                }
                for (number, text) in (1..).zip(events.chain(pairs)) {
                    put_name(data, interned::EVENT_NAMES, number, text);
                }
                for (number, text) in (1..).zip(names.all()) {
                    put_name(data, interned::ANNOTATION_NAMES, number, text);
                }
            });
        });
    }

    /// Writes the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let lost = self.session.losses().total();
        if let (true, Some(time)) = (lost > 0, self.session.time()) {
            let track = self.tracks.of_losses(&mut self.proto);
            let text = format!("{lost} events were lost while recording");
            self.proto.message(packet::SELF, |sent| {
                sent.unsigned(packet::TIMESTAMP, time.last);
                sent.unsigned(packet::SEQUENCE_ID, SEQUENCE);
                sent.unsigned(packet::SEQUENCE_FLAGS, NEEDS_STATE);
                sent.message(packet::TRACK_EVENT, |event| {
                    event.unsigned(track_event::KIND, event_type::INSTANT);
                    event.unsigned(track_event::TRACK, track);
                    event.bytes(track_event::NAME, text.as_bytes());
                });
            });
        }
        self.out.write_all(self.proto.as_slice())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.proto.len() >= WRITE {
            self.out.write_all(self.proto.as_slice())?;
            self.proto.clear();
        }
        Ok(())
    }

    /// Appends a track event of a hit.
    fn put(
        &mut self,
        head: EventHead,
        hit: Option<RowHit<'_>>,
        more: impl FnOnce(&mut Proto, &AnnotationNames),
    ) {
        let names = &self.names;
        let mut stack = None;
        let mut new_stack = None;
        if let Some(hit) = hit.filter(|hit| !hit.stack.is_empty()) {
            let known = self.stacks.id(hit.stack, self.session);
            stack = Some(known.id);
            new_stack = known.interned;
        }
        self.proto.message(packet::SELF, |sent| {
            sent.unsigned(packet::TIMESTAMP, head.time);
            sent.unsigned(packet::SEQUENCE_ID, SEQUENCE);
            sent.unsigned(packet::SEQUENCE_FLAGS, NEEDS_STATE);
            if let Some(data) = new_stack {
                sent.bytes(packet::INTERNED, data.as_slice());
            }
            sent.message(packet::TRACK_EVENT, |event| {
                event.unsigned(track_event::KIND, head.kind);
                event.unsigned(track_event::TRACK, head.track);
                if head.name > 0 {
                    event.unsigned(track_event::CATEGORIES, head.category);
                    event.unsigned(track_event::NAME_ID, head.name);
                }
                if let Some((field, flow)) = head.flow {
                    event.fixed64(field, flow);
                }
                if let Some(stack) = stack {
                    event.unsigned(track_event::CALLSTACK_ID, stack);
                }
                more(event, names);
            });
        });
    }
}

/// Perfetto's number of a clock; `None` for one that it does not know.
const fn clock_of(id: u32) -> Option<u64> {
    match id {
        0 => Some(clock::REALTIME),
        1 => Some(clock::MONOTONIC),
        4 => Some(clock::MONOTONIC_RAW),
        7 => Some(clock::BOOTTIME),
        _ => None,
    }
}

fn put_name(data: &mut Proto, field: u32, number: u64, text: &str) {
    data.message(field, |entry| {
        entry.unsigned(name::ID, number);
        entry.bytes(name::TEXT, text.as_bytes());
    });
}

impl RowSink for PerfettoTrace<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        if side == RowSide::OfSpan {
            return Ok(());
        }
        let track = self
            .tracks
            .of_thread(self.session, hit.row, &mut self.proto);
        let head = EventHead {
            kind: event_type::INSTANT,
            time: hit.row.time,
            track,
            name: hit.row.event as u64 + 1,
            category: 2,
            flow: None,
        };
        self.put(head, Some(hit), |event, names| {
            names.put(event, hit, Side::Begin);
            if side == RowSide::NoBegin {
                names.text(event, AnnotationNames::SPAN, "its begin is not known");
            }
        });
        self.flush()
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let begin = span.begin.row;
        let thread = self.tracks.of_thread(self.session, begin, &mut self.proto);
        let end = span.end.map(|end| end.hit.row);
        let same = end.is_none_or(|end| (end.pid, end.tid) == (begin.pid, begin.tid));
        let end_time = span.end_time();
        let nests =
            same && end_time.is_some_and(|end| self.lanes.nests(begin.tid, begin.time, end));
        let name = self.first_pair + span.pair as u64;
        let track = match nests {
            true => thread,
            false => self.tracks.below(thread, &mut self.proto),
        };
        let crosses = end.filter(|_| !same);
        self.flows += u64::from(crosses.is_some());
        let flow = self.flows;
        let head = EventHead {
            kind: event_type::BEGIN,
            time: begin.time,
            track,
            name,
            category: 1,
            flow: crosses.map(|_| (track_event::FLOWS, flow)),
        };
        self.put(head, Some(span.begin), |event, names| {
            names.put(event, span.begin, Side::Begin);
            if span.fate != SpanFate::Ended {
                names.text(event, AnnotationNames::SPAN, span.fate.word());
            }
        });
        if let Some(time) = end_time {
            let head = EventHead {
                kind: event_type::END,
                time,
                track,
                name: 0,
                category: 0,
                flow: None,
            };
            self.put(head, None, |event, names| {
                if let Some(SpanClose {
                    hit, own, spent, ..
                }) = span.end
                {
                    names.put(event, hit, Side::End);
                    names.number(event, AnnotationNames::SELF_NS, own);
                    names.put_parts(event, spent);
                }
            });
        }
        if let Some(end) = crosses {
            let track = self.tracks.of_thread(self.session, end, &mut self.proto);
            let head = EventHead {
                kind: event_type::INSTANT,
                time: end.time,
                track,
                name: end.event as u64 + 1,
                category: 1,
                flow: Some((track_event::ENDING_FLOWS, flow)),
            };
            self.put(head, None, |_, _| ());
        }
        self.flush()
    }
}
