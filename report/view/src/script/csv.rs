//! Comma-separated values (RFC 4180), one line an event or a span, with a header line; `report/FIELDS.md` describes the columns.

use std::collections::BTreeSet;

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::{TimePart, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::field_value::FieldSource;
use usdtrec_trace::fields::{BEGIN, END, FATE, Field, SPAN, SPAN_NS};
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::script::arguments::{ArgumentChoice, of_unknown_site};
use crate::script::line_field::{LineField, columns};
use crate::script::options::ScriptOptions;
use crate::script::row_writer::RowWriter;
use crate::script::spans::put_csv_parts;
use crate::script::times::{TimesOfDay, WallClock};
use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// Whether an argument is called as another column is.
fn is_column(name: &str) -> bool {
    let others = ["reltime_ns", "deltatime_ns", "missing", SPAN, SPAN_NS];
    others.contains(&name) || columns().any(|spec| spec.column == name)
}

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct CsvStyle {
    csv: Csv,
    /// Of each hit, the columns before those of arguments.
    fields: Vec<LineField>,
    has_arguments: bool,
    /// Whether the span that an event ends follows it.
    has_span: bool,
    /// Whether there are the parts of the time of spans.
    has_parts: bool,
    clock: Option<WallClock>,
    /// An argument of a site that is not known.
    unknown: Value,
    /// The hits of a line: an event, or begin and end of a span.
    sides: Vec<CsvSide>,
    /// Names of the spans, if they are what lines are about.
    spans: Option<Vec<String>>,
}

/// A hit of a line.
#[derive(Debug)]
struct CsvSide {
    /// Which one it is, in the names of its columns; empty for an event.
    prefix: String,
    /// Names of the argument columns.
    arguments: Vec<String>,
    /// The columns of each event, in their order.
    events: Vec<Vec<ArgumentColumn>>,
}

/// A column, and the argument of an event that is in it.
#[derive(Debug)]
struct ArgumentColumn {
    column: usize,
    /// The argument's place among the event's.
    place: usize,
    /// How its values are shown.
    form: Form,
}

impl CsvSide {
    /// The columns that the events have `of`, after those of `first`.
    fn new(
        session: &TraceSession,
        prefix: String,
        of: impl Iterator<Item = usize>,
        choice: &ArgumentChoice,
        first: &[String],
    ) -> Self {
        let mut arguments = first.to_vec();
        let mut known: HashMap<String, usize> = arguments.iter().cloned().zip(0..).collect();
        let events = &session.events().events;
        for event in of.filter_map(|at| events.get(at)) {
            for argument in choice.shown(&event.arguments) {
                let name = argument.name;
                known.entry(name.clone()).or_insert_with(|| {
                    arguments.push(name);
                    arguments.len() - 1
                });
            }
        }
        let columns = events.iter().map(|event| {
            let shown = choice.shown(&event.arguments).into_iter();
            let columns = shown.filter_map(|argument| {
                Some(ArgumentColumn {
                    column: *known.get(&argument.name)?,
                    place: argument.place,
                    form: argument.form,
                })
            });
            let mut columns: Vec<_> = columns.collect();
            columns.sort_by_key(|argument| argument.column);
            // Of two arguments of one name, the first.
            columns.dedup_by_key(|argument| argument.column);
            columns
        });
        Self {
            prefix,
            events: columns.collect(),
            arguments,
        }
    }

    /// Takes the columns of another one; gives the names of the arguments for which it has none.
    fn keep_columns(&mut self, printed: &Self) -> Vec<String> {
        let places = printed.arguments.iter().zip(0..);
        let places: HashMap<&str, usize> = places.map(|(name, at)| (&**name, at)).collect();
        for columns in &mut self.events {
            columns.retain_mut(|argument| {
                let name = self.arguments.get(argument.column);
                let place = name.and_then(|name| places.get(&**name));
                argument.column = place.copied().unwrap_or_default();
                place.is_some()
            });
            columns.sort_by_key(|argument| argument.column);
        }
        let own = std::mem::replace(&mut self.arguments, printed.arguments.clone());
        let hidden = own.into_iter();
        hidden
            .filter(|name| !places.contains_key(&**name))
            .collect()
    }

    /// The name of the column of an argument.
    fn column(&self, name: &str) -> String {
        match &*self.prefix {
            "" if !is_column(name) => name.to_owned(),
            prefix => format!("{prefix}args.{name}"),
        }
    }
}

impl CsvStyle {
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        pairs: &[Pair],
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let csv = options.format.csv();
        let asked = options.data_fields();
        let fields = LineField::of_hits(options);
        let choice = &options.fields.arguments;
        let is_event = options.spans.is_none();
        let sides = if is_event {
            let asked = (0..session.events().events.len()).filter(|at| filter.event(*at));
            let first = if choice.is_list() {
                choice.names()
            } else {
                &[]
            };
            vec![CsvSide::new(session, String::new(), asked, choice, first)]
        } else {
            let side = |name, events: fn(&Pair) -> &Vec<usize>| {
                let events = pairs.iter().flat_map(events).copied();
                CsvSide::new(session, format!("{name}."), events, choice, &[])
            };
            vec![
                side(BEGIN, |pair| &pair.starts),
                side(END, |pair| &pair.dones),
            ]
        };
        let names = pairs.iter().map(|pair| csv.field(&pair.name).into_owned());
        Ok(Self {
            csv,
            clock: LineField::utc_clock(&fields, session)?,
            fields,
            has_arguments: asked.has(Field::Args),
            has_span: is_event && asked.has(Field::Span),
            has_parts: session.has_waits(),
            unknown: of_unknown_site(),
            sides,
            spans: (!is_event).then(|| names.collect()),
        })
    }

    /// Takes the columns of a header that was printed before events were added. Returns the arguments for which it has no column.
    pub(crate) fn keep_columns(&mut self, printed: &Self) -> BTreeSet<String> {
        self.has_parts = printed.has_parts;
        let sides = self.sides.iter_mut().zip(&printed.sides);
        let hidden = sides.flat_map(|(new, printed)| new.keep_columns(printed));
        let hidden: BTreeSet<String> = hidden.collect();
        match self.has_arguments {
            true => hidden,
            false => BTreeSet::new(),
        }
    }

    /// The header line.
    pub(crate) fn header(&self) -> String {
        let mut columns: Vec<String> = Vec::new();
        if self.spans.is_some() {
            columns.extend([SPAN, SPAN_NS].map(str::to_owned));
            columns.extend(self.parts());
            columns.push(FATE.to_owned());
        }
        for side in &self.sides {
            let fields = self.fields.iter();
            columns.extend(fields.map(|field| format!("{}{}", side.prefix, field.name())));
            if self.has_arguments {
                let names = side.arguments.iter().map(|name| side.column(name));
                columns.extend(names.map(|name| self.csv.field(&name).into_owned()));
            }
        }
        if self.has_arguments {
            columns.push("missing".to_owned());
        }
        if self.has_span {
            columns.extend([SPAN, SPAN_NS].map(str::to_owned));
            columns.extend(self.parts());
        }
        columns.join(",") + "\n"
    }

    /// The columns of the parts of the time of spans.
    fn parts(&self) -> impl Iterator<Item = String> {
        let parts = TimePart::ALL.into_iter().filter(|_| self.has_parts);
        parts.map(|part| part.spec().column.to_owned())
    }

    /// Appends the fields of a hit.
    fn put_fields(
        &self,
        hit: &mut FieldSource<'_, '_>,
        before: PreviousTimes,
        times_of_day: &mut Option<TimesOfDay<'_>>,
        out: &mut Text,
    ) {
        let string = |text: &str, out: &mut Text| out.string(&self.csv.field(text));
        for field in &self.fields {
            if let Ok(value) = field.value(hit, before) {
                value.put(b"", times_of_day, string, out);
            }
            out.byte(b',');
        }
    }

    /// Appends the arguments of a hit, and to `reasons` why values are missing.
    fn put_arguments<'v>(
        &self,
        side: &CsvSide,
        event: usize,
        value: impl Fn(usize) -> Option<&'v Value>,
        reasons: &mut String,
        out: &mut Text,
    ) {
        let columns = side.events.get(event).map_or(&[][..], Vec::as_slice);
        let mut columns = columns.iter().peekable();
        for (at, name) in side.arguments.iter().enumerate() {
            if let Some(argument) = columns.next_if(|argument| argument.column == at)
                && let Some(value) = value(argument.place)
            {
                out.formed_csv(self.csv, &argument.form, value);
                if let Some(reason) = argument.form.missing(value) {
                    let separator = if reasons.is_empty() { "" } else { "; " };
                    reasons.push_str(&format!("{separator}{}{name}: {reason}", side.prefix));
                }
            }
            out.byte(b',');
        }
    }

    /// Ends a line, whose cells have a comma after each.
    fn end(&self, start: usize, reasons: &str, out: &mut Text) {
        if self.has_arguments {
            out.string(&self.csv.field(reasons));
        } else if out.len() > start {
            out.drop_last(1);
        }
        out.byte(b'\n');
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct CsvLines<'s> {
    style: &'s CsvStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    resolver: Resolver<'s>,
}

impl<'s> CsvLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s CsvStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
        }
    }

    /// Appends a hit of a span, or the cells that it would have.
    fn side(
        &mut self,
        side: &CsvSide,
        hit: Option<RowHit<'_>>,
        before: PreviousTimes,
        reasons: &mut String,
        out: &mut Text,
    ) {
        let style = self.style;
        let Some(hit) = hit else {
            let arguments = side.arguments.iter().filter(|_| style.has_arguments);
            return (0..style.fields.len() + arguments.count()).for_each(|_| out.byte(b','));
        };
        let sample = hit.row.sample();
        let mut source = hit.row.source(&sample, &mut self.resolver);
        style.put_fields(&mut source, before, &mut self.times_of_day, out);
        if style.has_arguments {
            let value = |place| hit.values.get(place);
            style.put_arguments(side, hit.row.event, value, reasons, out);
        }
    }
}

impl<'s> RowWriter<'s> for CsvLines<'s> {
    fn resolver(&mut self) -> &mut Resolver<'s> {
        &mut self.resolver
    }

    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text) {
        let Hit { target, sample } = hit;
        let style = self.style;
        let start = out.len();
        let mut source = FieldSource {
            resolver: &mut self.resolver,
            hit,
            known: None,
        };
        style.put_fields(&mut source, before, &mut self.times_of_day, out);
        let mut reasons = String::new();
        if let (true, Some(side)) = (style.has_arguments, style.sides.first()) {
            let site = self.resolver.session().site_of(target, sample);
            let values = site.map(|site| self.resolver.values(site, sample));
            let value = |place| values.map_or(Some(&style.unknown), |all| all.get(place));
            style.put_arguments(side, target.event as usize, value, &mut reasons, out);
        }
        style.end(start, &reasons, out);
    }

    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text) {
        let style = self.style;
        let start = out.len();
        let name = style.spans.as_ref().and_then(|names| names.get(span.pair));
        out.string(name.map_or("", String::as_str));
        out.byte(b',');
        if let Some(end) = span.end {
            out.unsigned(end.duration);
        }
        out.byte(b',');
        if style.has_parts {
            put_csv_parts(span.parts().ok(), out);
        }
        out.string(span.fate.word());
        out.byte(b',');
        let mut reasons = String::new();
        let hits = [Some(span.begin), span.end.map(|end| end.hit)];
        for (side, hit) in style.sides.iter().zip(hits) {
            self.side(side, hit, before, &mut reasons, out);
        }
        style.end(start, &reasons, out);
    }
}
