//! Comma-separated values (RFC 4180), one line a sample, with a header line; `report/FIELDS.md` describes the columns.

use std::collections::BTreeSet;

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::fields::{FIELDS, Field, FieldSpec, FieldValues, Fields, SPAN, SPAN_NS};
use usdtrec_trace::form::Form;
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;
use usdtrec_trace::symbols::known_inlining::FoundInlining;

use crate::script::arguments::of_unknown_site;
use crate::script::location::{file_name, whole_source_text};
use crate::script::options::ScriptOptions;
use crate::script::times::{TimeOrigin, TimesOfDay, WallClock};
use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// The columns before those of the arguments, in order.
fn columns() -> impl Iterator<Item = &'static FieldSpec> {
    let has_column = |spec: &&FieldSpec| !matches!(spec.values, FieldValues::Several);
    FIELDS.iter().filter(has_column)
}

/// Whether an argument is called as another column is.
fn is_column(name: &str) -> bool {
    let others = ["reltime_ns", "deltatime_ns", "missing", SPAN, SPAN_NS];
    others.contains(&name) || columns().any(|spec| spec.column == name)
}

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct CsvStyle {
    csv: Csv,
    fields: Fields,
    times: TimeOrigin,
    clock: Option<WallClock>,
    /// An argument of a site that is not known.
    unknown: Value,
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

impl CsvStyle {
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let fields = options.fields.apply(Fields::DATA);
        let tod = fields.has(Field::Tod);
        let events = &session.events().events;
        let choice = &options.fields.arguments;
        let mut arguments: Vec<String> = if choice.is_list() {
            choice.names().to_vec()
        } else {
            Vec::new()
        };
        let mut known: HashMap<String, usize> = arguments.iter().cloned().zip(0..).collect();
        let asked = events
            .iter()
            .enumerate()
            .filter(|(at, _)| filter.event(*at));
        for (_, event) in asked {
            for (_, name) in choice.choose(&event.arguments) {
                known.entry(name.to_owned()).or_insert_with(|| {
                    arguments.push(name.to_owned());
                    arguments.len() - 1
                });
            }
        }
        let columns = events.iter().map(|event| {
            let places = choice.choose(&event.arguments).into_iter();
            let columns = places.filter_map(|(place, name)| {
                let column = *known.get(name)?;
                let form = Form::new(event.arguments.get(place)?).plain();
                Some(ArgumentColumn {
                    column,
                    place,
                    form,
                })
            });
            let mut columns: Vec<_> = columns.collect();
            columns.sort_by_key(|argument| argument.column);
            // Of two arguments of one name, the first.
            columns.dedup_by_key(|argument| argument.column);
            columns
        });
        Ok(Self {
            csv: options.format.csv(),
            fields,
            times: options.times,
            clock: tod.then(|| WallClock::utc(session)).transpose()?,
            unknown: of_unknown_site(),
            events: columns.collect(),
            arguments,
        })
    }

    /// Takes the columns of a header that was printed before events were added. Returns the arguments for which it has no column.
    pub(crate) fn keep_columns(&mut self, printed: &Self) -> BTreeSet<String> {
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
        let has_column = |name: &String| places.contains_key(&**name);
        let arguments = std::mem::replace(&mut self.arguments, printed.arguments.clone());
        let hidden = arguments.into_iter().filter(|name| !has_column(name));
        match self.fields.has(Field::Args) {
            true => hidden.collect(),
            false => BTreeSet::new(),
        }
    }

    /// The header line.
    pub(crate) fn header(&self) -> String {
        let csv_field = |name| self.csv.field(name);
        let fixed = columns()
            .filter(|spec| self.fields.has(spec.field))
            .flat_map(|spec| {
                let since = self.times.name().filter(|_| spec.field == Field::Time);
                [Some(csv_field(spec.column)), since.map(csv_field)]
            })
            .flatten();
        let has_arguments = self.fields.has(Field::Args);
        let arguments = self.arguments.iter().filter(|_| has_arguments);
        let missing = has_arguments.then_some("missing".into());
        let spans = [SPAN, SPAN_NS].map(csv_field).into_iter();
        let spans = spans.filter(|_| self.fields.has(Field::Span));
        let columns: Vec<_> = fixed
            .chain(arguments.map(|name| match is_column(name) {
                true => self.csv.field(&format!("args.{name}")).into_owned().into(),
                false => csv_field(name),
            }))
            .chain(missing)
            .chain(spans)
            .collect();
        columns.join(",") + "\n"
    }
}

/// Writes lines. One a thread.
#[derive(Debug)]
pub(crate) struct CsvLines<'s> {
    style: &'s CsvStyle,
    times_of_day: Option<TimesOfDay<'s>>,
    pub(crate) resolver: Resolver<'s>,
}

impl<'s> CsvLines<'s> {
    pub(crate) fn new(session: &'s TraceSession, style: &'s CsvStyle) -> Self {
        Self {
            style,
            times_of_day: style.clock.as_ref().map(TimesOfDay::new),
            resolver: Resolver::new(session),
        }
    }

    /// Appends a sample's line.
    pub(crate) fn line(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let fields = self.style.fields;
        let start = out.len();
        for FieldSpec { field, values, .. } in columns().copied() {
            if fields.has(field) {
                match values {
                    FieldValues::Process(field) => {
                        match self.resolver.process_value(field, sample) {
                            Ok(ProcessValue::Number(number)) => out.unsigned(number),
                            Ok(text) => {
                                let text = text.escaped().unwrap_or_default();
                                out.string(&self.style.csv.field(text));
                            }
                            Err(_) => {}
                        }
                    }
                    _ => self.field(field, target, sample, out),
                }
                out.byte(b',');
                if field == Field::Time && self.style.times != TimeOrigin::Clock {
                    self.since(target, sample, before, out);
                    out.byte(b',');
                }
            }
        }
        if fields.has(Field::Args) {
            self.arguments(target, sample, out);
        } else if out.len() > start {
            out.drop_last(1);
        }
        out.byte(b'\n');
    }

    fn since(
        &self,
        target: SampleTarget,
        sample: &Sample<'_>,
        before: PreviousTimes,
        out: &mut Text,
    ) {
        let events = &self.resolver.session().events().events;
        let event = events.get(target.event as usize);
        if event.is_some_and(|event| event.sampled_fields().has(Field::Time)) {
            out.since_ns(self.style.times.difference(sample.time, before));
        }
    }

    fn field(&mut self, field: Field, target: SampleTarget, sample: &Sample<'_>, out: &mut Text) {
        let session = self.resolver.session();
        let event = session.events().events.get(target.event as usize);
        if event.is_some_and(|event| !event.sampled_fields().has(field)) {
            return;
        }
        match field {
            Field::Time => out.unsigned(sample.time),
            Field::Tod => {
                if let Some(times_of_day) = &mut self.times_of_day {
                    times_of_day.put(sample.time, 9, out);
                    out.byte(b'Z');
                }
            }
            Field::Cpu => out.unsigned(u64::from(sample.cpu)),
            Field::Pid => out.signed(i64::from(sample.pid)),
            Field::Tid => out.signed(i64::from(sample.tid)),
            Field::Comm => {
                let processes = session.processes();
                let name = self.resolver.name(sample.tid, sample.time);
                match name.and_then(|name| processes.name(name)) {
                    Some(name) => out.string(&self.style.csv.field(name.text)),
                    None => {
                        out.byte(b':');
                        out.signed(i64::from(sample.tid));
                    }
                }
            }
            Field::Event => {
                let name = event.map_or("", |event| &event.name);
                out.string(&self.style.csv.field(name));
            }
            Field::Ip => {
                out.fixed(b"0x");
                out.hex(sample.ip);
            }
            Field::Period => out.unsigned(session.weight(target, sample)),
            Field::Sym | Field::Symoff | Field::Dso => self.place(field, sample, out),
            Field::Srcline => {
                let (_, found) = self.resolver.inlining_of_hit(sample);
                if let Some(source) = found.and_then(FoundInlining::innermost) {
                    out.string(&self.style.csv.field(&whole_source_text(source)));
                }
            }
            // Fields about the process are written before; others have columns of their own.
            _ => {}
        }
    }

    fn place(&mut self, field: Field, sample: &Sample<'_>, out: &mut Text) {
        let session = self.resolver.session();
        let place = self.resolver.place(sample);
        match (field, &place.symbol) {
            (Field::Sym, Some(symbol)) => {
                out.string(&self.style.csv.field(&symbol.name));
            }
            (Field::Symoff, Some(symbol)) => out.unsigned(symbol.offset),
            (Field::Dso, _) if place.file.is_some() => {
                out.string(&self.style.csv.field(&file_name(session, place)));
            }
            _ => {}
        }
    }

    fn arguments(&mut self, target: SampleTarget, sample: &Sample<'_>, out: &mut Text) {
        let unknown = &self.style.unknown;
        let site = self.resolver.session().site_of(target, sample);
        let values = site.map(|site| self.resolver.values(site, sample));
        let mut reasons = String::new();
        let style = self.style;
        let columns = style
            .events
            .get(target.event as usize)
            .map_or(&[][..], Vec::as_slice);
        let mut columns = columns.iter().peekable();
        for (at, name) in style.arguments.iter().enumerate() {
            if let Some(ArgumentColumn { place, form, .. }) =
                columns.next_if(|argument| argument.column == at)
                && let Some(value) = values.map_or(Some(unknown), |all| all.get(*place))
            {
                out.formed_csv(style.csv, form, value);
                if let Some(reason) = form.missing(value) {
                    let separator = if reasons.is_empty() { "" } else { "; " };
                    reasons.push_str(&format!("{separator}{name}: {reason}"));
                }
            }
            out.byte(b',');
        }
        out.string(&self.style.csv.field(&reasons));
    }
}
