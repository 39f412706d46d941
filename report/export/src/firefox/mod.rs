//! Firefox Profiler's processed profile: JSON.
//!
//! | row | in the profile |
//! |---|---|
//! | event of no span | instant marker of its thread |
//! | span | interval marker of the thread on which it began; without an end a marker that goes on to the end of the trace, or an instant if a span around it ended |
//! | stack of a hit | sample of its thread, and cause of the marker that begins with the hit |
//! | lost events | markers of a thread of their own |
//!
//! Data of markers: `args:NAME` of the begin or the event, `end:NAME` of the end; as in JSON `missing:NAME`, `cut:NAME`, `bytes:NAME`, `numbers:NAME` and
//! `demangled:NAME`, of the end with `end_` before them. Values are those of `script --format json`; integers beyond ±2^53 are strings. Times are milliseconds since the
//! first event of the trace, with six digits after the point.
//!
//! Tables of a profile are columns, and those of a thread are complete only at the end of the trace: until then they are in a temporary file.
//!
//! The package `fxprof-processed-profile` (0.8.1) does not replace this. Both were compared in the profiler's own loader. The package
//!
//! * always has `threadCPUDelta` of samples, which is not known: with 0 the loader has a CPU use of 0 % for each sample, which the timeline draws, and
//!   without the column 100 %;
//! * has functions by name without a file, or by their address in a file, which traces do not have: the libraries of functions are lost, and so are
//!   inlined calls and the files of scripts;
//! * has no place for the host, the kernel, the command, lost events and control groups (`meta.extra`, `meta.arguments`), for the monotonic clock at the
//!   beginning, for the time and the thread of a cause, and for a thread of no process;
//! * gives each marker all fields of its schema, with one type each: each set of members that markers have would be a schema of its own;
//! * has all markers in memory (169 MB for a profile of 321 MB).

pub(crate) mod json_table;
pub(crate) mod libraries;
pub(crate) mod marker_schema;
pub(crate) mod profile_threads;
pub(crate) mod stack_tables;

use std::io::{self, Write};

use serde_json::{Value as Json, json};
use usdtrec_analysis::origin::Origin;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanClose, SpanFate, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::json_arguments::{JsonArgument, put_flat_arguments};
use usdtrec_view::text::buffer::{Piece, Text};
use usdtrec_view::text::quoted::json_string;

use crate::firefox::json_table::{put_json, put_list};
use crate::firefox::marker_schema::{LOSSES, MarkerSchemas, MarkerSide};
use crate::firefox::profile_threads::{MarkerHead, MarkerTime, ProfileThreads, ThreadKey};
use crate::firefox::stack_tables::StackTables;
use crate::redaction::{KeptArgument, RedactedArguments};

/// Version of the processed format, the first one with tables that all threads share. The profiler upgrades older ones when it loads them.
const VERSION: u32 = 60;
/// Most bytes of threads. Engines of JavaScript cannot have a string of more than 2^29 characters, which a profile becomes when it is loaded.
const MAX_BYTES: u64 = 500_000_000;
/// Most threads, for each of which there are columns.
const MAX_THREADS: usize = 1 << 16;
/// `CLOCK_MONOTONIC`.
const MONOTONIC: u32 = 1;

/// Writes the format.
pub(crate) struct FirefoxProfile<'a> {
    session: &'a TraceSession,
    pairs: &'a [Pair],
    redacted: &'a RedactedArguments,
    out: &'a mut dyn Write,
    schemas: MarkerSchemas,
    events: Vec<ProfileEvent>,
    /// Of each pair, what its data begin with and the number of its name.
    spans: Vec<MarkerKind>,
    threads: ProfileThreads,
    tables: StackTables,
    data: Text,
    too_large: bool,
}

/// What is the same in all markers of a kind.
#[derive(Clone, Debug)]
struct MarkerKind {
    /// `{"type":` and the name of the schema.
    start: Piece,
    name: u32,
    category: usize,
}

/// What is the same in all hits of an event.
struct ProfileEvent {
    kind: MarkerKind,
    /// The name as a JSON string.
    name: Piece,
    arguments: Vec<JsonArgument>,
}

impl<'a> FirefoxProfile<'a> {
    pub(crate) fn new(
        session: &'a TraceSession,
        walk: &'a RowWalk<'_>,
        redacted: &'a RedactedArguments,
        out: &'a mut dyn Write,
    ) -> Self {
        let schemas = MarkerSchemas::new(session, walk);
        let mut tables = StackTables::default();
        let mut kind = |schema: &String, name: &str, category: usize| MarkerKind {
            start: Piece::new(format!("{{\"type\":{}", json_string(schema)).as_bytes()),
            name: tables.strings.number(name.to_owned()),
            category,
        };
        let mut events = Vec::new();
        let known = schemas.events.iter().zip(&schemas.event_categories);
        let both = session.events().events.iter().zip(known);
        for (at, (event, (schema, category))) in both.enumerate() {
            events.push(ProfileEvent {
                kind: kind(schema, &event.name, category.unwrap_or(0)),
                name: Piece::new(json_string(&event.name).as_bytes()),
                arguments: redacted
                    .kept(at, event)
                    .map(|KeptArgument { place, argument }| JsonArgument {
                        place,
                        name: flat_name(&argument.name),
                        form: Form::new(&argument).human(false),
                    })
                    .collect(),
            });
        }
        let known = schemas.spans.iter().zip(&schemas.span_categories);
        let spans = walk.pairs.iter().zip(known);
        let spans = spans.map(|(pair, (schema, category))| kind(schema, &pair.name, *category));
        let spans = spans.collect();
        Self {
            session,
            pairs: &walk.pairs,
            redacted,
            out,
            schemas,
            events,
            spans,
            threads: ProfileThreads::new(session.time().map_or(0, |time| time.first)),
            tables,
            data: Text::default(),
            too_large: false,
        }
    }

    /// Whether there was more than a profile can have.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Writes the profile.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.losses()?;
        let mut head = Text::default();
        head.string("{\"meta\":");
        put_json(&self.meta(), &mut head);
        // Schemas are the largest part of it.
        head.drop_last(1);
        head.string(",\n\"markerSchema\":");
        let schemas = self.schemas.all(self.session, self.pairs, self.redacted);
        put_list(schemas, &mut head);
        head.string("},\n");
        self.tables.put(self.session, &mut head);
        head.string(",\n");
        self.out.write_all(head.as_slice())?;
        self.threads.write(self.out)?;
        self.out.write_all(b"}\n")
    }

    /// The member `meta` without the schemas of markers.
    fn meta(&self) -> Json {
        let origin = Origin::new(self.session);
        let entry =
            |label: &str, value: &str| json!({"label": label, "format": "string", "value": value});
        let trace = [
            entry("Host", &origin.host),
            entry("Kernel", &origin.kernel),
            entry("Lost events", &origin.lost.to_string()),
        ];
        let mut extra = vec![json!({"label": "Trace", "entries": trace})];
        let cgroups = self.threads.cgroups();
        let cgroups: Vec<Json> = cgroups.map(|(path, of)| entry(path, &of)).collect();
        if !cgroups.is_empty() {
            extra.push(json!({"label": "Control groups", "entries": cgroups}));
        }
        let mut visible = self.threads.visible();
        let selected = visible.first().copied();
        visible.sort_unstable();
        let mut meta = json!({
            "preprocessedProfileVersion": VERSION,
            "version": 30,
            "interval": 1,
            "processType": 0,
            "stackwalk": 1,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "startTime": origin.wall_ns.unwrap_or(0) as f64 / 1e6,
            "product": "usdtrec",
            "importedFrom": origin.producer,
            "arguments": origin.command.join(" "),
            "platform": "X11",
            "oscpu": format!("Linux {}", origin.machine),
            "extra": extra,
            "initialVisibleThreads": visible,
            "initialSelectedThreads": selected.as_slice(),
            "categories": self.schemas.categories(),
        });
        if self
            .session
            .info()
            .clock
            .is_some_and(|known| known.id == MONOTONIC)
        {
            let first = self.session.time().map_or(0, |time| time.first);
            meta["startTimeAsClockMonotonicNanosecondsSinceBoot"] = first.into();
        }
        meta
    }

    /// Adds markers of lost events: it is not known when in the trace they were lost.
    fn losses(&mut self) -> io::Result<()> {
        let Some(time) = self.session.time() else {
            return Ok(());
        };
        let session = self.session;
        for (event, lost) in session.losses().by_name(session.events()) {
            let thread = self.threads.number(ThreadKey::Losses);
            let head = MarkerHead {
                time: MarkerTime::Interval {
                    begin: time.first,
                    end: time.last,
                },
                name: self.tables.strings.number("Lost events".to_owned()),
                category: 0,
            };
            self.data.clear();
            self.data.string("{\"type\":\"");
            self.data.string(LOSSES);
            self.data.string("\",\"lost\":");
            self.data.json_string(&lost.to_string());
            if let Some(event) = event {
                self.data.string(",\"event\":");
                self.data.json_string(event);
            }
            self.data.byte(b'}');
            self.threads.marker(thread, head, self.data.as_slice())?;
        }
        Ok(())
    }

    /// Appends the members of a hit.
    fn hit(&mut self, hit: RowHit<'_>, side: MarkerSide) {
        let text = &mut self.data;
        let end = side == MarkerSide::End;
        if let Some(cpu) = hit.row.cpu {
            text.string(if end { ",\"end_cpu\":" } else { ",\"cpu\":" });
            text.unsigned(cpu.into());
        }
        let Some(event) = self.events.get(hit.row.event) else {
            return;
        };
        text.string(if end {
            ",\"end_event\":"
        } else {
            ",\"event\":"
        });
        text.piece(&event.name);
        put_flat_arguments(&event.arguments, hit.values, side.prefixes(), text);
    }

    /// Appends the stack of a hit as the cause of its marker.
    fn cause(&mut self, hit: RowHit<'_>, stack: Option<u32>) {
        let Some(stack) = stack else {
            return;
        };
        let text = &mut self.data;
        text.string(",\"cause\":{\"tid\":");
        text.signed(hit.row.tid.into());
        text.string(",\"time\":");
        self.threads.put_time(hit.row.time, text);
        text.string(",\"stack\":");
        text.unsigned(stack.into());
        text.byte(b'}');
    }

    fn stack(&mut self, hit: RowHit<'_>) -> Option<u32> {
        match hit.stack {
            [] => None,
            stack => self.tables.stack(stack, self.session),
        }
    }

    /// Adds a marker with the data that were appended.
    fn put(&mut self, thread: usize, time: MarkerTime, kind: &MarkerKind) -> io::Result<()> {
        self.data.byte(b'}');
        let head = MarkerHead {
            time,
            name: kind.name,
            category: kind.category,
        };
        self.threads.marker(thread, head, self.data.as_slice())?;
        if self.threads.len() > MAX_BYTES || self.threads.count() > MAX_THREADS {
            self.too_large = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    }
}

/// The name of an argument as the end of a member's name.
fn flat_name(name: &str) -> Piece {
    let name = json_string(name) + ":";
    Piece::new(name.as_bytes().get(1..).unwrap_or_default())
}

impl RowSink for FirefoxProfile<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        let stack = self.stack(hit);
        if stack.is_none() && side == RowSide::OfSpan {
            return Ok(());
        }
        let thread = self.threads.of_hit(self.session, hit.row);
        if let Some(stack) = stack {
            self.threads.sample(thread, hit.row.time, stack)?;
        }
        let kind = self.events.get(hit.row.event);
        let Some(kind) = kind.map(|event| event.kind.clone()) else {
            return Ok(());
        };
        if side == RowSide::OfSpan {
            return Ok(());
        }
        self.data.clear();
        self.data.piece(&kind.start);
        self.hit(hit, MarkerSide::Begin);
        if side == RowSide::NoBegin {
            self.data.string(",\"span\":\"its begin is not known\"");
        }
        self.cause(hit, stack);
        self.put(thread, MarkerTime::Instant(hit.row.time), &kind)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let begin = span.begin.row;
        let thread = self.threads.of_hit(self.session, begin);
        let Some(kind) = self.spans.get(span.pair).cloned() else {
            return Ok(());
        };
        self.data.clear();
        self.data.piece(&kind.start);
        self.hit(span.begin, MarkerSide::Begin);
        let mut time = MarkerTime::Begin(begin.time);
        if let Some(SpanClose { hit, own, .. }) = span.end {
            let end = hit.row;
            time = MarkerTime::Interval {
                begin: begin.time,
                end: end.time,
            };
            self.hit(hit, MarkerSide::End);
            if (end.pid, end.tid) != (begin.pid, begin.tid) {
                self.data.string(",\"end_pid\":\"");
                self.data.signed(end.pid.into());
                self.data.string("\",\"end_tid\":");
                self.data.signed(end.tid.into());
            }
            self.data.string(",\"self_ns\":");
            self.data.unsigned(own);
        }
        if let Some(end) = span.until {
            let begin = begin.time;
            time = MarkerTime::Interval { begin, end };
        }
        if span.fate != SpanFate::Ended {
            let fate = format!(",\"span\":\"{}\"", span.fate.word());
            self.data.string(&fate);
        }
        let stack = self.stack(span.begin);
        self.cause(span.begin, stack);
        self.put(thread, time, &kind)
    }
}
