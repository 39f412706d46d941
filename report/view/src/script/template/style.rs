//! A template, worked out for each event of a trace.

use usdtrec_format::escape::escape;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::fields::{Field, Fields, SPAN};
use usdtrec_trace::form::Form;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

use crate::script::arguments::{check, place};
use crate::script::choice;
use crate::script::options::ScriptOptions;
use crate::script::template::layout;
use crate::script::template::spec::Spec;
use crate::script::template::{Item, Meaning, Template};
use crate::script::times::{TimeOrigin, WallClock};
use crate::text::buffer::{Piece, Text};

/// Shown for an argument that an event does not have, or a field that its samples do not have.
const NONE: &str = "-";

/// A part of a line.
#[derive(Debug)]
pub(crate) enum LinePart {
    /// Settings for all lines of the event.
    Literal(Piece),
    Field(Field, Spec),
    Since(TimeOrigin, Spec),
    /// An argument by its place.
    Argument(usize, Form, Spec),
    /// All arguments: each one's name with an equals sign.
    Arguments(Vec<(Piece, Form)>, Spec),
}

/// Settings for all lines of an event.
#[derive(Debug)]
pub(crate) struct TemplateEvent {
    pub(crate) parts: Vec<LinePart>,
    /// Whether there are arguments among them.
    pub(crate) has_arguments: bool,
}

/// Settings for all lines of a trace.
#[derive(Debug)]
pub(crate) struct TemplateStyle {
    pub(crate) events: Vec<TemplateEvent>,
    pub(crate) times: TimeOrigin,
    pub(crate) clock: Option<WallClock>,
    /// Digits of times, if the template does not say.
    pub(crate) digits: usize,
}

impl TemplateStyle {
    /// # Errors
    /// [`ReportError::Question`] for an argument that no event has, and for the time of day where the trace does not have it.
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        template: &Template,
        options: &ScriptOptions,
    ) -> Result<Self, ReportError> {
        for item in &template.items {
            if let Item::Value(Meaning::Argument(name), _) = item {
                let fields = choice::names();
                let fields = fields.into_iter().filter(|field| *field != SPAN);
                let known: Vec<&'static str> = fields.chain(["reltime", "deltatime"]).collect();
                check(name, session, filter, &known).map_err(|error| {
                    let refused = match name.as_str() {
                        SPAN => Some(QuestionError::SpanInTemplate),
                        name => choice::refused(name).map(QuestionError::Field),
                    };
                    refused.map_or(error, ReportError::Question)
                })?;
            }
        }
        let tod = |item: &Item| matches!(item, Item::Value(Meaning::Field(Field::Tod), _));
        let tod = template.items.iter().any(tod);
        let events = session.events().events.iter();
        Ok(Self {
            events: events
                .map(|event| TemplateEvent::new(template, event))
                .collect(),
            times: options.times,
            clock: tod.then(|| WallClock::local(session)).transpose()?,
            digits: if options.nanoseconds { 9 } else { 6 },
        })
    }
}

impl TemplateEvent {
    fn new(template: &Template, event: &Event) -> Self {
        let sampled = event.sampled_fields();
        let (mut parts, mut literal) = (Vec::new(), Text::default());
        for item in &template.items {
            let part = match item {
                Item::Literal(text) => {
                    literal.string(text);
                    continue;
                }
                Item::Value(meaning, spec) => match part(meaning, *spec, event, sampled) {
                    EventPart::Varying(part) => part,
                    EventPart::Same(text) => {
                        layout::text(&text, *spec, &mut literal);
                        continue;
                    }
                },
            };
            if literal.len() > 0 {
                parts.push(LinePart::Literal(Piece::new(literal.as_slice())));
                literal.clear();
            }
            parts.push(part);
        }
        // A line ends with a newline.
        literal.byte(b'\n');
        parts.push(LinePart::Literal(Piece::new(literal.as_slice())));
        let is_argument =
            |part: &LinePart| matches!(part, LinePart::Argument(..) | LinePart::Arguments(..));
        Self {
            has_arguments: parts.iter().any(is_argument),
            parts,
        }
    }
}

/// What a name means in an event.
enum EventPart {
    /// It is this text in all lines.
    Same(String),
    /// Each line has its own.
    Varying(LinePart),
}

/// What a name means in an event.
fn part(meaning: &Meaning, spec: Spec, event: &Event, sampled: Fields) -> EventPart {
    let form = |place: usize| {
        let argument = event.arguments.get(place);
        argument.map_or(Form::Plain, |argument| Form::new(argument).plain())
    };
    match meaning {
        Meaning::Field(Field::Event) => EventPart::Same(escape(&event.name).into_owned()),
        Meaning::Field(Field::Args) => {
            let arguments = event.arguments.iter().enumerate().map(|(at, argument)| {
                let blank = if at > 0 { " " } else { "" };
                let name = format!("{blank}{}=", escape(&argument.name));
                (Piece::new(name.as_bytes()), form(at))
            });
            EventPart::Varying(LinePart::Arguments(arguments.collect(), spec))
        }
        Meaning::Field(field) if sampled.has(*field) => {
            EventPart::Varying(LinePart::Field(*field, spec))
        }
        Meaning::Since(times) if sampled.has(Field::Time) => {
            EventPart::Varying(LinePart::Since(*times, spec))
        }
        Meaning::Field(_) | Meaning::Since(_) => EventPart::Same(NONE.to_owned()),
        Meaning::Argument(name) => match place(name, &event.arguments) {
            Some(place) => EventPart::Varying(LinePart::Argument(place, form(place), spec)),
            None => EventPart::Same(NONE.to_owned()),
        },
    }
}
