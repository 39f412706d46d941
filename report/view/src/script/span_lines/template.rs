//! Lines of a template.
//!
//! | in braces | |
//! |---|---|
//! | `span`, `span_name`, `span_ns` | how long the span lasted, its name, its duration in nanoseconds |
//! | `begin.NAME`, `end.NAME` | an argument, or `comm`, `tid`, `pid`, `cpu`, `time`, `tod` or `event`, of the hit that begins or ends it |
//! | `comm`, `tid`, `pid`, `cpu`, `time`, `tod`, `event` | those of the hit that ends it, or without one of the begin |
//! | another name | the argument of the begin, or of the end if only that has it |
//! | `args` | all arguments |

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::escape::escape;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::fields::{FIELDS, Field, FieldSpec, Fields, SPAN, SPAN_NAME, SPAN_NS};
use usdtrec_trace::form::Form;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::script::arguments::place;
use crate::script::options::ScriptOptions;
use crate::script::span_lines::arguments::{SpanArgument, last_hit, of_events};
use crate::script::span_lines::line_times::LineTimes;
use crate::script::span_lines::text::{names, put_arguments, put_duration};
use crate::script::template::layout::{argument, pad, pad_number, signed, text, unsigned};
use crate::script::template::spec::{Align, Spec};
use crate::script::template::{Item, Meaning, Template};
use crate::script::times::{TimeOrigin, WallClock};
use crate::text::buffer::{Piece, Text};

/// Shown for an argument that an event does not have, and for what a span without an end does not have.
const NONE: &str = "-";

/// One of the two hits of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Begin,
    End,
    /// The hit that the line is about.
    Last,
}

/// A part of a line.
enum SpanPart {
    Literal(Piece),
    Duration(Spec),
    DurationNs(Spec),
    Name(Spec),
    Field(Side, Field, Spec),
    Since(TimeOrigin, Spec),
    Argument(NamedArgument, Spec),
    Arguments(Spec),
}

/// An argument by its name.
struct NamedArgument {
    /// `Last` if the name does not say it: that of the begin, if it has one.
    side: Side,
    /// Of each event, its place and how its values are shown.
    places: Vec<Option<(usize, Form)>>,
}

/// Settings for all lines.
pub(crate) struct SpanTemplate {
    parts: Vec<SpanPart>,
    names: Vec<String>,
    events: Vec<String>,
    arguments: Vec<Vec<SpanArgument>>,
    times: TimeOrigin,
    pub(crate) clock: Option<WallClock>,
    digits: usize,
}

impl SpanTemplate {
    /// # Errors
    /// [`ReportError::Question`] for names that spans do not have, and for the time of day where the trace does not have it.
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        template: &Template,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let mut parts = Vec::new();
        for item in template.items() {
            parts.push(match item {
                Item::Literal(text) => SpanPart::Literal(Piece::new(text.as_bytes())),
                Item::Value(meaning, spec) => part(session, pairs, meaning, *spec)?,
            });
        }
        let tod = |part: &SpanPart| matches!(part, SpanPart::Field(_, Field::Tod, _));
        let tod = parts.iter().any(tod);
        let events = session.events().events.iter();
        Ok(Self {
            parts,
            names: names(pairs),
            events: events
                .map(|event| escape(&event.name).into_owned())
                .collect(),
            arguments: of_events(session, pairs, options),
            times: options.times,
            clock: tod.then(|| WallClock::local(session)).transpose()?,
            digits: if options.nanoseconds { 9 } else { 6 },
        })
    }

    /// Appends the line of a span.
    pub(crate) fn line(
        &self,
        session: &TraceSession,
        span: &SpanRow<'_>,
        times: &mut LineTimes<'_>,
        out: &mut Text,
    ) {
        for part in &self.parts {
            let start = out.len();
            match part {
                SpanPart::Literal(text) => out.piece(text),
                SpanPart::Duration(spec) => {
                    put_duration(span, out);
                    pad(start, *spec, Align::Right, out);
                }
                SpanPart::DurationNs(spec) => match span.end {
                    Some(end) => unsigned(end.duration, *spec, out),
                    None => text(NONE, *spec, out),
                },
                SpanPart::Name(spec) => {
                    text(
                        self.names.get(span.pair).map_or("", String::as_str),
                        *spec,
                        out,
                    );
                }
                SpanPart::Field(side, field, spec) => match hit_of(span, *side) {
                    Some(hit) => self.field(session, *field, *spec, hit, times, out),
                    None => text(NONE, *spec, out),
                },
                SpanPart::Since(origin, spec) => {
                    let time = last_hit(span).row.time;
                    let digits = spec.precision.unwrap_or(self.digits);
                    out.since(origin.difference(time, times.before), 0, digits);
                    pad_number(start, *spec, out);
                }
                SpanPart::Argument(named, spec) => named.put(span, *spec, out),
                SpanPart::Arguments(spec) => {
                    put_arguments(&self.arguments, span, out);
                    if out.len() > start {
                        out.drop_last(1);
                    }
                    pad(start, *spec, Align::Left, out);
                }
            }
        }
        out.byte(b'\n');
    }

    fn field(
        &self,
        session: &TraceSession,
        field: Field,
        spec: Spec,
        RowHit { row, .. }: RowHit<'_>,
        times: &mut LineTimes<'_>,
        out: &mut Text,
    ) {
        let start = out.len();
        let digits = spec.precision.unwrap_or(self.digits);
        match field {
            Field::Comm => {
                let name = session.processes().name_or_number(row.comm, row.tid);
                text(&name, spec, out);
            }
            Field::Tid => signed(row.tid.into(), spec, out),
            Field::Pid => signed(row.pid.into(), spec, out),
            Field::Cpu => match row.cpu {
                Some(cpu) => unsigned(cpu.into(), spec, out),
                None => text(NONE, spec, out),
            },
            Field::Time => {
                out.since(self.times.difference(row.time, times.before), 0, digits);
                pad_number(start, spec, out);
            }
            Field::Tod => {
                if let Some(of_day) = &mut times.of_day {
                    of_day.put(row.time, digits, out);
                }
                pad(start, spec, Align::Left, out);
            }
            _ => text(
                self.events.get(row.event).map_or("", String::as_str),
                spec,
                out,
            ),
        }
    }
}

impl NamedArgument {
    fn put(&self, span: &SpanRow<'_>, spec: Spec, out: &mut Text) {
        let sides = match self.side {
            Side::Last => &[Side::Begin, Side::End][..],
            Side::Begin => &[Side::Begin],
            Side::End => &[Side::End],
        };
        let found = sides.iter().find_map(|side| {
            let hit = hit_of(span, *side)?;
            let (place, form) = self.places.get(hit.row.event)?.as_ref()?;
            Some((form, hit.values.get(*place)?))
        });
        match found {
            Some((form, value)) => argument(form, spec, value, out),
            None => text(NONE, spec, out),
        }
    }
}

/// One of the two hits of a span.
fn hit_of<'a>(span: &SpanRow<'a>, side: Side) -> Option<RowHit<'a>> {
    match side {
        Side::Begin => Some(span.begin),
        Side::End => span.end.map(|end| end.hit),
        Side::Last => Some(last_hit(span)),
    }
}

/// What a name in braces means.
fn part(
    session: &TraceSession,
    pairs: &[Pair],
    meaning: &Meaning,
    spec: Spec,
) -> Result<SpanPart, ReportError> {
    Ok(match meaning {
        Meaning::Field(Field::Args) => SpanPart::Arguments(spec),
        Meaning::Field(field) if Fields::OF_SPANS.has(*field) => {
            SpanPart::Field(Side::Last, *field, spec)
        }
        Meaning::Field(field) => {
            let field = field.spec().name;
            return Err(QuestionError::FieldOfEvents { field }.into());
        }
        Meaning::Since(times) => SpanPart::Since(*times, spec),
        Meaning::Argument(name) => match name.as_str() {
            SPAN => SpanPart::Duration(spec),
            SPAN_NS => SpanPart::DurationNs(spec),
            SPAN_NAME => SpanPart::Name(spec),
            name => named_part(session, pairs, name, spec)?,
        },
    })
}

/// What a name in braces means that may begin with the side of the span.
fn named_part(
    session: &TraceSession,
    pairs: &[Pair],
    name: &str,
    spec: Spec,
) -> Result<SpanPart, ReportError> {
    let (side, bare) = match name.split_once('.') {
        Some(("begin", rest)) => (Side::Begin, rest),
        Some(("end", rest)) => (Side::End, rest),
        _ => (Side::Last, name),
    };
    let is_field =
        |field: &Field| Fields::OF_SPANS.has(*field) && !matches!(field, Field::Args | Field::Span);
    let field = Field::named(bare).filter(is_field);
    if let Some(field) = field.filter(|_| side != Side::Last) {
        return Ok(SpanPart::Field(side, field, spec));
    }
    let bare = bare.strip_prefix("args.").unwrap_or(bare);
    let (begins, ends) = (side != Side::End, side != Side::Begin);
    let events = session.events().events.iter().enumerate();
    let places = events.map(|(at, event)| {
        let is_of =
            |pair: &Pair| begins && pair.starts.contains(&at) || ends && pair.dones.contains(&at);
        let found = pairs
            .iter()
            .any(is_of)
            .then(|| place(bare, &event.arguments));
        let place = found.flatten()?;
        let form = Form::new(event.arguments.get(place)?);
        Some((place, form))
    });
    let places: Vec<_> = places.collect();
    if places.iter().any(Option::is_some) || pairs.is_empty() {
        return Ok(SpanPart::Argument(NamedArgument { side, places }, spec));
    }
    let of_pairs = pairs
        .iter()
        .flat_map(|pair| pair.starts.iter().chain(&pair.dones));
    let events = of_pairs.filter_map(|event| session.events().events.get(*event));
    let known = events.flat_map(|event| &event.arguments);
    let known = list(known.map(|argument| &*argument.name));
    let mut fields = vec![SPAN, SPAN_NS, SPAN_NAME, "begin.NAME", "end.NAME"];
    let of_hits = |spec: &&FieldSpec| Fields::OF_SPANS.has(spec.field) && spec.name != SPAN;
    fields.extend(FIELDS.iter().filter(of_hits).map(|spec| spec.name));
    Err(QuestionError::no_argument(name, known, &fields).into())
}
