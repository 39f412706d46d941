//! Schemas of markers: which members their data have, and how these are shown.

use serde_json::{Value as Json, json};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::schema::{Argument, ArgumentType, Labels, Unit};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name;
use usdtrec_view::json_arguments::{DETAILS, FlatPrefixes};

use crate::redaction::RedactedArguments;

/// Arguments that are shown in the list of markers.
const IN_LABEL: usize = 4;
/// Colours of categories, but for the first one's and that of errors.
const COLORS: [&str; 8] = [
    "blue",
    "green",
    "orange",
    "purple",
    "yellow",
    "lightblue",
    "brown",
    "magenta",
];
/// Name of the schema of lost events.
pub(crate) const LOSSES: &str = "losses";

/// Members that all markers of hits may have, and how they are shown.
const MORE: [(&str, &str); 8] = [
    ("event", "string"),
    ("cpu", "integer"),
    ("end_event", "string"),
    ("end_cpu", "integer"),
    ("end_pid", "pid"),
    ("end_tid", "tid"),
    ("self_ns", "nanoseconds"),
    ("span", "string"),
];

/// Which side of a span a hit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerSide {
    /// The begin, or an event of no span.
    Begin,
    End,
}

impl MarkerSide {
    /// What the names of its members begin with.
    pub(crate) const fn prefixes(self) -> FlatPrefixes<'static> {
        let (values, details) = match self {
            Self::Begin => ("args", ""),
            Self::End => ("end", "end_"),
        };
        FlatPrefixes { values, details }
    }
}

/// Names and categories of markers.
#[derive(Debug, Default)]
pub(crate) struct MarkerSchemas {
    /// Names of the schemas of events.
    pub(crate) events: Vec<String>,
    /// Names of those of spans.
    pub(crate) spans: Vec<String>,
    /// Categories of events; `None` for those that are in no row.
    pub(crate) event_categories: Vec<Option<usize>>,
    /// Categories of spans.
    pub(crate) span_categories: Vec<usize>,
    /// Names of categories: providers, after the one of everything else.
    categories: Vec<String>,
}

impl MarkerSchemas {
    pub(crate) fn new(session: &TraceSession, walk: &RowWalk<'_>) -> Self {
        let mut schemas = Self {
            categories: vec!["Other".to_owned()],
            ..Self::default()
        };
        for (number, event) in session.events().events.iter().enumerate() {
            // There may be several of one name.
            schemas
                .events
                .push(format!("event {number} {}", event.name));
            let has_rows = walk.has_event(number);
            let category = has_rows.then(|| schemas.category(&event.name));
            schemas.event_categories.push(category);
        }
        for (number, pair) in walk.pairs.iter().enumerate() {
            schemas.spans.push(format!("span {number} {}", pair.name));
            let category = schemas.category(&pair.name);
            schemas.span_categories.push(category);
        }
        schemas
    }

    /// The category of the provider of an event or span.
    fn category(&mut self, name: &str) -> usize {
        let Some((provider, _)) = short_name(name).split_once(':') else {
            return 0;
        };
        let mut known = self.categories.iter().skip(1);
        match known.position(|known| known == provider) {
            Some(at) => at + 1,
            None => {
                self.categories.push(provider.to_owned());
                self.categories.len() - 1
            }
        }
    }

    /// The member `categories`.
    pub(crate) fn categories(&self) -> Json {
        let colors = std::iter::once(&"grey").chain(COLORS.iter().cycle());
        let all = self.categories.iter().zip(colors);
        all.map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
            .collect()
    }

    /// The schemas of the member `markerSchema`.
    pub(crate) fn all(
        &self,
        session: &TraceSession,
        pairs: &[Pair],
        redacted: &RedactedArguments,
    ) -> impl Iterator<Item = Json> {
        let kept = move |number: usize| {
            let event = session.events().events.get(number);
            let kept = event.into_iter();
            let kept = kept.flat_map(move |event| redacted.kept(number, event));
            kept.map(|kept| kept.argument)
        };
        let known = self.event_categories.iter().zip(&self.events).enumerate();
        let known = known.filter(|(_, (category, _))| category.is_some());
        let of_events = known.map(move |(number, (_, name))| {
            let arguments: Vec<Argument> = kept(number).collect();
            of_hits(name, &arguments, &[])
        });
        let arguments_of = move |numbers: &[usize]| {
            let mut arguments: Vec<Argument> = Vec::new();
            for argument in numbers.iter().flat_map(|&number| kept(number)) {
                if arguments.iter().all(|known| known.name != argument.name) {
                    arguments.push(argument);
                }
            }
            arguments
        };
        let of_spans = self.spans.iter().zip(pairs).map(move |(name, pair)| {
            let (begin, end) = (arguments_of(&pair.starts), arguments_of(&pair.dones));
            of_hits(name, &begin, &end)
        });
        let fields = [("event", "string"), ("lost", "integer")];
        let fields = fields.map(|(key, format)| field(key, key, format));
        let losses = schema(LOSSES, fields.into());
        of_events.chain(of_spans).chain([losses])
    }
}

fn schema(name: &str, fields: Vec<Json>) -> Json {
    json!({
        "name": name,
        "tooltipLabel": "{marker.name}",
        "chartLabel": "{marker.name}",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "fields": fields,
    })
}

/// The schema of events, or of spans with the arguments of their begins and ends.
fn of_hits(name: &str, begin: &[Argument], end: &[Argument]) -> Json {
    let mut fields = Vec::new();
    put_side(begin, MarkerSide::Begin, &mut fields);
    put_side(end, MarkerSide::End, &mut fields);
    let more = MORE.iter();
    fields.extend(more.map(|(key, format)| field(key, &key.replace('_', " "), format)));
    let mut schema = schema(name, fields);
    // In labels, names of members end at a point, and at the closing brace.
    let is_plain = |argument: &&Argument| {
        let mut letters = argument.name.bytes();
        letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let shown = begin.iter().filter(is_plain).take(IN_LABEL);
    let shown = shown.map(|argument| format!("{0}={{marker.data.args:{0}}}", argument.name));
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        schema["tableLabel"] = shown.join(" ").into();
    }
    schema
}

/// Appends the fields of the arguments of a side.
fn put_side(arguments: &[Argument], side: MarkerSide, fields: &mut Vec<Json>) {
    let FlatPrefixes { values, details } = side.prefixes();
    let label = details.replace('_', " ");
    for argument in arguments {
        let name = &argument.name;
        fields.push(field(
            &format!("{values}:{name}"),
            &format!("{label}{name}"),
            format_of(argument),
        ));
        fields.extend(DETAILS.iter().map(|detail| {
            let word = detail.word;
            field(
                &format!("{details}{word}:{name}"),
                &format!("{label}{name}: {word}"),
                "string",
            )
        }));
    }
}

/// A member of the data of markers.
fn field(key: &str, label: &str, format: &str) -> Json {
    json!({"key": key, "label": label, "format": format})
}

/// How the profiler shows the values of an argument.
fn format_of(argument: &Argument) -> &'static str {
    match (&argument.labels, &argument.kind, &argument.unit) {
        (Some(Labels::Enum(_) | Labels::Flags(_)), ..) => "string",
        (None, Some(ArgumentType::Integer { .. }), Some(unit)) => of_unit(unit),
        (None, Some(ArgumentType::Integer { .. }), None) => "integer",
        (None, Some(ArgumentType::String(_) | ArgumentType::Bytes(_)), _) => "sanitized-string",
        // Values without a type may be strings: those of the program, which are removed from a profile that is made public.
        (None, None, _) => "sanitized-string",
        // Floats, too: the profiler rounds decimals, and shows none that is not a number.
        (None, Some(_), _) => "string",
    }
}

fn of_unit(unit: &Unit) -> &'static str {
    match (unit.nanoseconds(), unit.bytes()) {
        (Some(1), _) => "nanoseconds",
        (Some(1_000), _) => "microseconds",
        (Some(1_000_000), _) => "milliseconds",
        (Some(1_000_000_000), _) => "seconds",
        (None, Some(1)) => "bytes",
        _ => "integer",
    }
}
