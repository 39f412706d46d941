//! A template, worked out for a trace.

use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::TimePart;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::fields::{FIELDS, Field, FieldSpec, Fields, SPAN, SPAN_NAME, SPAN_NS};
use usdtrec_trace::form::Form;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::script::arguments::{LineArgument, check, place};
use crate::script::choice;
use crate::script::line_field::LineField;
use crate::script::options::ScriptOptions;
use crate::script::template::spec::Spec;
use crate::script::template::{Item, Meaning, Template};
use crate::script::times::WallClock;
use crate::text::buffer::Piece;

/// One of the hits of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HitSide {
    Begin,
    End,
    /// The event, or the hit that the line of a span is about.
    Last,
}

/// A part of a line.
#[derive(Debug)]
pub(crate) enum LinePart {
    Literal(Piece),
    Duration(Spec),
    DurationNs(Spec),
    /// A part of the time of the span; with its unit, or in ns.
    Part(TimePart, PartUnit, Spec),
    SpanName(Spec),
    Field(HitSide, LineField, Spec),
    Argument(NamedArgument, Spec),
    Arguments(Spec),
}

/// How a part of the time of a span is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartUnit {
    /// As durations are.
    Shown,
    /// A number, ns.
    Nanoseconds,
}

/// The part that a name means: `span.blocked`, `span.blocked_ns`.
fn part(name: &str) -> Option<(TimePart, PartUnit)> {
    let name = name.strip_prefix("span.")?;
    let in_ns = |part: &TimePart| part.spec().column == name;
    match TimePart::named(name) {
        Some(part) => Some((part, PartUnit::Shown)),
        None => Some((
            TimePart::ALL.into_iter().find(in_ns)?,
            PartUnit::Nanoseconds,
        )),
    }
}

/// An argument by its name.
#[derive(Debug)]
pub(crate) struct NamedArgument {
    /// `Last` if the name does not say it: that of the begin, if it has one.
    pub(crate) side: HitSide,
    /// Of each event, its place and how its values are shown.
    pub(crate) places: Vec<Option<(usize, Form)>>,
}

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct TemplateStyle {
    pub(crate) parts: Vec<LinePart>,
    /// Whether there are arguments among them.
    pub(crate) has_arguments: bool,
    /// Names of the spans.
    pub(crate) names: Vec<String>,
    pub(crate) arguments: Vec<Vec<LineArgument>>,
    pub(crate) clock: Option<WallClock>,
    /// Digits of times, if the template does not say.
    pub(crate) digits: usize,
}

/// Works out what names in braces mean.
struct Meanings<'a> {
    session: &'a TraceSession,
    filter: &'a SampleFilter,
    pairs: &'a [Pair],
    options: &'a ScriptOptions,
}

impl TemplateStyle {
    /// # Errors
    /// [`ReportError::Question`] for names that no event or span has, and for the time of day where the trace does not have it.
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        pairs: &[Pair],
        template: &Template,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        let meanings = Meanings {
            session,
            filter,
            pairs,
            options,
        };
        let parts = template.items().iter().map(|item| match item {
            Item::Literal(text) => Ok(LinePart::Literal(Piece::new(text.as_bytes()))),
            Item::Value(meaning, spec) => meanings.part(meaning, *spec),
        });
        let parts = parts.collect::<Result<Vec<_>, ReportError>>()?;
        let is_tod = |part: &LinePart| match part {
            LinePart::Field(_, LineField::Of(spec), _) => spec.field == Field::Tod,
            _ => false,
        };
        let tod = parts.iter().any(is_tod);
        let is_argument =
            |part: &LinePart| matches!(part, LinePart::Argument(..) | LinePart::Arguments(_));
        Ok(Self {
            has_arguments: parts.iter().any(is_argument),
            parts,
            names: pairs.iter().map(|pair| pair.name.clone()).collect(),
            arguments: options.fields.arguments.of_events(session),
            clock: tod.then(|| WallClock::local(session)).transpose()?,
            digits: options.text_times().digits,
        })
    }
}

impl Meanings<'_> {
    fn is_span(&self) -> bool {
        self.options.spans.is_some()
    }

    /// What a name in braces means.
    fn part(&self, meaning: &Meaning, spec: Spec) -> Result<LinePart, ReportError> {
        let is_field = |field: &Field| !self.is_span() || Fields::OF_SPANS.has(*field);
        Ok(match meaning {
            Meaning::Field(Field::Args) => LinePart::Arguments(spec),
            Meaning::Field(field) if is_field(field) => {
                LinePart::Field(HitSide::Last, self.field(*field), spec)
            }
            Meaning::Field(field) => {
                let field = field.spec().name;
                return Err(QuestionError::FieldOfEvents { field }.into());
            }
            Meaning::Since(times) => LinePart::Field(HitSide::Last, LineField::Since(*times), spec),
            Meaning::Argument(name) if self.is_span() => match name.as_str() {
                SPAN => LinePart::Duration(spec),
                SPAN_NS => LinePart::DurationNs(spec),
                SPAN_NAME => LinePart::SpanName(spec),
                name => match part(name) {
                    Some((part, unit)) => LinePart::Part(part, unit, spec),
                    None => self.of_span(name, spec)?,
                },
            },
            Meaning::Argument(name) => self.of_event(name, spec)?,
        })
    }

    const fn field(&self, field: Field) -> LineField {
        match field {
            Field::Time => LineField::Since(self.options.times),
            field => LineField::Of(field.spec()),
        }
    }

    /// An argument of events.
    fn of_event(&self, name: &str, spec: Spec) -> Result<LinePart, ReportError> {
        let fields = choice::names();
        let fields = fields.into_iter().filter(|field| *field != SPAN);
        let known: Vec<&'static str> = fields.chain(["reltime", "deltatime"]).collect();
        check(name, self.session, self.filter, &known).map_err(|error| {
            let refused = match name {
                SPAN => Some(QuestionError::SpanInTemplate),
                name => choice::refused(name).map(QuestionError::Field),
            };
            refused.map_or(error, ReportError::Question)
        })?;
        let events = self.session.events().events.iter();
        let places = events.map(|event| {
            let place = place(name, &event.arguments)?;
            Some((place, Form::new(event.arguments.get(place)?).plain()))
        });
        let places = places.collect();
        let side = HitSide::Last;
        Ok(LinePart::Argument(NamedArgument { side, places }, spec))
    }

    /// What a name of spans means, which may begin with the side of the span.
    fn of_span(&self, name: &str, spec: Spec) -> Result<LinePart, ReportError> {
        let (side, bare) = match name.split_once('.') {
            Some(("begin", rest)) => (HitSide::Begin, rest),
            Some(("end", rest)) => (HitSide::End, rest),
            _ => (HitSide::Last, name),
        };
        let is_field = |field: &Field| {
            Fields::OF_SPANS.has(*field) && !matches!(field, Field::Args | Field::Span)
        };
        let field = Field::named(bare).filter(is_field);
        if let Some(field) = field.filter(|_| side != HitSide::Last) {
            return Ok(LinePart::Field(side, self.field(field), spec));
        }
        let bare = bare.strip_prefix("args.").unwrap_or(bare);
        let (begins, ends) = (side != HitSide::End, side != HitSide::Begin);
        let events = self.session.events().events.iter().enumerate();
        let places = events.map(|(at, event)| {
            let is_of = |pair: &Pair| {
                begins && pair.starts.contains(&at) || ends && pair.dones.contains(&at)
            };
            let found = self
                .pairs
                .iter()
                .any(is_of)
                .then(|| place(bare, &event.arguments));
            let place = found.flatten()?;
            let form = Form::new(event.arguments.get(place)?);
            Some((place, form))
        });
        let places: Vec<_> = places.collect();
        if places.iter().any(Option::is_some) || self.pairs.is_empty() {
            return Ok(LinePart::Argument(NamedArgument { side, places }, spec));
        }
        let of_pairs = self
            .pairs
            .iter()
            .flat_map(|pair| pair.starts.iter().chain(&pair.dones));
        let events = of_pairs.filter_map(|event| self.session.events().events.get(*event));
        let known = events.flat_map(|event| &event.arguments);
        let known = list(known.map(|argument| &*argument.name));
        let mut fields = vec![SPAN, SPAN_NS, SPAN_NAME, "begin.NAME", "end.NAME"];
        let of_hits = |spec: &&FieldSpec| Fields::OF_SPANS.has(spec.field) && spec.name != SPAN;
        fields.extend(FIELDS.iter().filter(of_hits).map(|spec| spec.name));
        Err(QuestionError::no_argument(name, known, &fields).into())
    }
}
