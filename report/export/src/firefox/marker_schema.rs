//! Schemas of markers: which members their data have, and how these are shown.

use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::schema::{Argument, ArgumentType, Labels, Unit};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name;
use usdtrec_view::json_arguments::DETAILS;
use usdtrec_view::text::buffer::Text;

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

/// Which side of a span a hit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerSide {
    /// The begin, or an event of no span.
    Begin,
    End,
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

/// A member of the data of markers.
struct Field<'f> {
    key: &'f str,
    label: &'f str,
    format: &'f str,
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

    /// Appends the member `categories`.
    pub(crate) fn put_categories(&self, out: &mut Text) {
        let colors = std::iter::once(&"grey").chain(COLORS.iter().cycle());
        let mut before = "\"categories\":[";
        for (name, color) in self.categories.iter().zip(colors) {
            out.string(before);
            out.string("{\"name\":");
            out.json_string(name);
            out.string(",\"color\":\"");
            out.string(color);
            out.string("\",\"subcategories\":[\"Other\"]}");
            before = ",";
        }
        out.byte(b']');
    }

    /// Appends the member `markerSchema`.
    pub(crate) fn put(&self, session: &TraceSession, pairs: &[Pair], out: &mut Text) {
        let events = &session.events().events;
        out.string("\"markerSchema\":[");
        let known = self.event_categories.iter().zip(&self.events);
        for ((category, name), event) in known.zip(events) {
            if category.is_none() {
                continue;
            }
            begin(name, &event.arguments, out);
            put_side(&event.arguments, MarkerSide::Begin, out);
            put_more(out);
            out.string("]},\n");
        }
        let arguments_of = |numbers: &[usize]| {
            let mut arguments: Vec<Argument> = Vec::new();
            for event in numbers.iter().filter_map(|number| events.get(*number)) {
                for argument in &event.arguments {
                    if arguments.iter().all(|known| known.name != argument.name) {
                        arguments.push(argument.clone());
                    }
                }
            }
            arguments
        };
        for (name, pair) in self.spans.iter().zip(pairs) {
            let arguments = arguments_of(&pair.starts);
            begin(name, &arguments, out);
            put_side(&arguments, MarkerSide::Begin, out);
            put_side(&arguments_of(&pair.dones), MarkerSide::End, out);
            put_more(out);
            out.string("]},\n");
        }
        begin(LOSSES, &[], out);
        for (key, format) in [("event", "string"), ("lost", "integer")] {
            put_field(
                out,
                &Field {
                    key,
                    label: key,
                    format,
                },
            );
        }
        out.drop_last(1);
        out.string("]}]");
    }
}

/// Appends a schema up to its fields.
fn begin(name: &str, arguments: &[Argument], out: &mut Text) {
    out.string("{\"name\":");
    out.json_string(name);
    // In labels, names of members end at a point, and at the closing brace.
    let is_plain = |argument: &&Argument| {
        let mut letters = argument.name.bytes();
        letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let shown = arguments.iter().filter(is_plain).take(IN_LABEL);
    let shown = shown.map(|argument| format!("{0}={{marker.data.args:{0}}}", argument.name));
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        out.string(",\"tableLabel\":");
        out.json_string(&shown.join(" "));
    }
    out.string(",\"tooltipLabel\":\"{marker.name}\",\"chartLabel\":\"{marker.name}\"");
    out.string(
        ",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],\"fields\":[",
    );
}

/// Appends the fields of the arguments of a side.
fn put_side(arguments: &[Argument], side: MarkerSide, out: &mut Text) {
    let (values, details, label) = match side {
        MarkerSide::Begin => ("args", "", ""),
        MarkerSide::End => ("end", "end_", "end "),
    };
    for argument in arguments {
        let name = &argument.name;
        put_field(
            out,
            &Field {
                key: &format!("{values}:{name}"),
                label: &format!("{label}{name}"),
                format: format_of(argument),
            },
        );
        for detail in &DETAILS {
            put_field(
                out,
                &Field {
                    key: &format!("{details}{}:{name}", detail.word),
                    label: &format!("{label}{name}: {}", detail.word),
                    format: "string",
                },
            );
        }
    }
}

/// Appends the fields that all markers of hits may have.
fn put_more(out: &mut Text) {
    for (key, format) in [
        ("event", "string"),
        ("cpu", "integer"),
        ("end_event", "string"),
        ("end_cpu", "integer"),
        ("end_pid", "pid"),
        ("end_tid", "tid"),
        ("self_ns", "nanoseconds"),
        ("span", "string"),
    ] {
        put_field(
            out,
            &Field {
                key,
                label: &key.replace('_', " "),
                format,
            },
        );
    }
    out.drop_last(1);
}

fn put_field(out: &mut Text, field: &Field<'_>) {
    out.string("{\"key\":");
    out.json_string(field.key);
    out.string(",\"label\":");
    out.json_string(field.label);
    out.string(",\"format\":\"");
    out.string(field.format);
    out.string("\"},");
}

/// How the profiler shows the values of an argument.
fn format_of(argument: &Argument) -> &'static str {
    match (&argument.labels, &argument.kind, &argument.unit) {
        (Some(Labels::Enum(_) | Labels::Flags(_)), ..) => "string",
        (None, Some(ArgumentType::Integer { .. }), Some(unit)) => of_unit(unit),
        (None, Some(ArgumentType::Integer { .. }), None) => "integer",
        (None, Some(ArgumentType::String(_) | ArgumentType::Bytes(_)), _) => "sanitized-string",
        // Values without a type may be texts: those of the program, which are removed from a profile that is made public.
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
