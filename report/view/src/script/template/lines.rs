//! Lines of a template, for events and for spans.
//!
//! Of spans, there are besides:
//!
//! | in braces | |
//! |---|---|
//! | `span`, `span_name`, `span_ns` | how long the span lasted, its name, its duration in nanoseconds |
//! | `span.oncpu`, `span.runnable`, `span.iowait`, `span.blocked` | what it was spent on; with `_ns` after it, in nanoseconds |
//! | `begin.NAME`, `end.NAME` | an argument, or `comm`, `tid`, `pid`, `cpu`, `time`, `tod` or `event`, of the hit that begins or ends it |
//! | `comm`, `tid`, `pid`, `cpu`, `time`, `tod`, `event` | those of the hit that ends it, or without one of the begin |
//! | another name | the argument of the begin, or of the end if only that has it |

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_format::perf::Sample;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::field_value::{FieldSource, FieldValue, ThreadFacts};
use usdtrec_trace::fields::FieldValues;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::script::arguments::of_unknown_site;
use crate::script::line_field::{LineField, LineValue};
use crate::script::row_writer::RowWriter;
use crate::script::span_text::{put_arguments, put_duration};
use crate::script::spans::put_time;
use crate::script::template::layout::{argument, hex, pad, pad_number, signed, text, unsigned};
use crate::script::template::spec::{Align, Spec};
use crate::script::template::style::{HitSide, LinePart, NamedArgument, PartUnit, TemplateStyle};
use crate::script::text_frames::source_text;
use crate::script::times::TimesOfDay;
use crate::text::buffer::Text;

/// Shown for an argument that an event does not have, and for what a span without an end does not have.
const NONE: &str = "-";

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct TemplateLines<'s> {
    style: &'s TemplateStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    resolver: Resolver<'s>,
    /// An argument of a site that is not known.
    unknown: Value,
}

/// A hit of a line.
#[derive(Clone, Copy)]
struct LineHit<'h> {
    hit: Hit<'h>,
    known: Option<ThreadFacts>,
    values: HitValues<'h>,
}

/// The arguments of a hit.
#[derive(Clone, Copy)]
enum HitValues<'h> {
    Of(&'h [Value]),
    /// The values that were decoded last at this site; `None` if it is not known.
    Decoded(Option<usize>),
}

/// What a line is about.
struct TemplateRow<'h> {
    /// The event, or the hit that begins the span.
    begin: LineHit<'h>,
    end: Option<LineHit<'h>>,
    span: Option<&'h SpanRow<'h>>,
}

impl<'h> LineHit<'h> {
    /// A hit of a span.
    const fn of_row(hit: RowHit<'h>, sample: &'h Sample<'h>) -> Self {
        let target = hit.row.target();
        Self {
            hit: Hit { target, sample },
            known: Some(hit.row.thread()),
            values: HitValues::Of(hit.values),
        }
    }

    const fn event(&self) -> usize {
        self.hit.target.event as usize
    }
}

impl<'h> TemplateRow<'h> {
    fn hit(&self, side: HitSide) -> Option<&LineHit<'h>> {
        match side {
            HitSide::Begin => Some(&self.begin),
            HitSide::End => self.end.as_ref(),
            HitSide::Last => self.end.as_ref().or(Some(&self.begin)),
        }
    }
}

impl<'s> TemplateLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s TemplateStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
            unknown: of_unknown_site(),
        }
    }

    fn line(&mut self, row: &TemplateRow<'_>, before: PreviousTimes, out: &mut Text) {
        let style = self.style;
        for part in &style.parts {
            let start = out.len();
            match part {
                LinePart::Literal(text) => out.piece(text),
                LinePart::Field(side, field, spec) => match row.hit(*side) {
                    Some(hit) => self.field(*field, *spec, hit, before, out),
                    None => text(NONE, *spec, out),
                },
                LinePart::Argument(named, spec) => self.argument(named, row, *spec, out),
                LinePart::Arguments(spec) => {
                    self.arguments(row, out);
                    if out.len() > start {
                        // The blank after the last one.
                        out.drop_last(1);
                    }
                    pad(start, *spec, Align::Left, out);
                }
                LinePart::Duration(spec) => {
                    row.span.iter().for_each(|span| put_duration(span, out));
                    pad(start, *spec, Align::Right, out);
                }
                LinePart::DurationNs(spec) => match row.span.and_then(|span| span.end) {
                    Some(end) => unsigned(end.duration, *spec, out),
                    None => text(NONE, *spec, out),
                },
                LinePart::Part(part, unit, spec) => {
                    let parts = row.span.and_then(|span| span.parts().ok());
                    match (parts.map(|parts| parts.get(*part)), unit) {
                        (None, _) => text(NONE, *spec, out),
                        (Some(ns), PartUnit::Nanoseconds) => unsigned(ns, *spec, out),
                        (Some(ns), PartUnit::Shown) => {
                            put_time(ns, out);
                            pad(start, *spec, Align::Right, out);
                        }
                    }
                }
                LinePart::SpanName(spec) => {
                    let name = row.span.and_then(|span| style.names.get(span.pair));
                    text(name.map_or("", String::as_str), *spec, out);
                }
            }
        }
        out.byte(b'\n');
    }

    #[inline]
    fn field(
        &mut self,
        field: LineField,
        spec: Spec,
        hit: &LineHit<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let mut source = FieldSource {
            resolver: &mut self.resolver,
            hit: hit.hit,
            known: hit.known,
        };
        let start = out.len();
        let digits = spec.precision.unwrap_or(self.style.digits);
        match field.value(&mut source, before) {
            Ok(LineValue::Since(since)) => {
                out.since(since, 0, digits);
                pad_number(start, spec, out);
            }
            Ok(LineValue::Of(value)) => match value {
                FieldValue::Time(number) | FieldValue::Unsigned(number) => {
                    unsigned(number, spec, out);
                }
                FieldValue::Signed(number) => signed(number, spec, out),
                FieldValue::Address(number) | FieldValue::Offset(number) => hex(number, spec, out),
                FieldValue::TimeOfDay(time) => {
                    if let Some(times_of_day) = &mut self.times_of_day {
                        times_of_day.put(time, digits, out);
                    }
                    pad(start, spec, Align::Left, out);
                }
                FieldValue::Source(source) => text(&source_text(source), spec, out),
                value => text(&value.text().unwrap_or_default(), spec, out),
            },
            Err(reason) => match field {
                LineField::Of(of)
                    if reason != NONE && matches!(of.values, FieldValues::Process(_)) =>
                {
                    text("", spec, out);
                }
                _ => text(reason, spec, out),
            },
        }
    }

    /// An argument of a hit.
    #[inline]
    fn value<'v>(&'v self, hit: &LineHit<'v>, place: usize) -> Option<&'v Value> {
        match hit.values {
            HitValues::Of(values) => values.get(place),
            HitValues::Decoded(site) => {
                let value = site.and_then(|site| self.resolver.decoded(site).get(place));
                value.or(Some(&self.unknown))
            }
        }
    }

    #[inline]
    fn argument(&self, named: &NamedArgument, row: &TemplateRow<'_>, spec: Spec, out: &mut Text) {
        let sides = match named.side {
            HitSide::Last => &[HitSide::Begin, HitSide::End][..],
            HitSide::Begin => &[HitSide::Begin],
            HitSide::End => &[HitSide::End],
        };
        let found = sides.iter().find_map(|side| {
            let hit = row.hit(*side)?;
            let (place, form) = named.places.get(hit.event())?.as_ref()?;
            Some((form, self.value(hit, *place)?))
        });
        match found {
            Some((form, value)) => argument(form, spec, value, out),
            None => text(NONE, spec, out),
        }
    }

    /// All arguments, each with a blank after it.
    fn arguments(&self, row: &TemplateRow<'_>, out: &mut Text) {
        let arguments = &self.style.arguments;
        if let Some(span) = row.span {
            return put_arguments(arguments, span, out);
        }
        for shown in arguments.get(row.begin.event()).into_iter().flatten() {
            let value = self.value(&row.begin, shown.place);
            let value = value.filter(|value| **value != Value::Missing(Missing::Absent));
            shown.put("", value, out);
        }
    }
}

impl<'s> RowWriter<'s> for TemplateLines<'s> {
    fn resolver(&mut self) -> &mut Resolver<'s> {
        &mut self.resolver
    }

    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text) {
        let mut site = None;
        if self.style.has_arguments {
            site = self.resolver.session().site_of(hit.target, hit.sample);
            if let Some(site) = site {
                self.resolver.values(site, hit.sample);
            }
        }
        let row = TemplateRow {
            begin: LineHit {
                hit,
                known: None,
                values: HitValues::Decoded(site),
            },
            end: None,
            span: None,
        };
        self.line(&row, before, out);
    }

    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text) {
        let end = span.end.map(|end| end.hit);
        let (begin, ended) = (span.begin.row.sample(), end.map(|end| end.row.sample()));
        let row = TemplateRow {
            begin: LineHit::of_row(span.begin, &begin),
            end: end
                .zip(ended.as_ref())
                .map(|(end, sample)| LineHit::of_row(end, sample)),
            span: Some(span),
        };
        self.line(&row, before, out);
    }
}
