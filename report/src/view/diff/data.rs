//! A comparison as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Map, Value, json};
use usdtrec_format::escape::escape_json;

use crate::analysis::diff::comparison::Comparison;
use crate::analysis::diff::metric::{Figure, Kind, Subject, Verdict};
use crate::analysis::diff::recording::Side;
use crate::analysis::diff::slices::SLICES;
use crate::analysis::diff::{DiffOptions, FALSE_ALARMS};
use crate::view::report::data::json_number;
use crate::view::text::quoted::Csv;

/// Members of a figure, in their order.
const MEMBERS: [&str; 17] = [
    "kind", "name", "argument", "group", "figure", "value", "a", "b", "a_low", "a_high", "b_low",
    "b_high", "change", "noise", "score", "verdict", "shown",
];

/// The comparison as JSON.
pub(crate) fn json(comparison: &Comparison, options: &DiffOptions) -> String {
    let figures = comparison.figures.iter();
    let figures: Vec<Value> = figures
        .map(|figure| {
            let members = MEMBERS.iter().zip(members(figure, options));
            let members = members.map(|(name, value)| ((*name).to_owned(), value));
            Value::Object(members.collect::<Map<_, _>>())
        })
        .collect();
    let left_out = comparison.left_out.iter();
    let left_out: Vec<Value> = left_out
        .map(|(subject, reason)| {
            let [kind, name, argument, group] = words(subject);
            json!({"kind": kind, "name": name, "argument": argument, "group": group, "reason": reason})
        })
        .collect();
    let object = json!({
        "a": json_side(&comparison.a),
        "b": json_side(&comparison.b),
        "slices": SLICES,
        "false_alarms": FALSE_ALARMS,
        "tested": comparison.tested,
        "figures": figures,
        "left_out": left_out,
    });
    escape_json(&object.to_string()).into_owned() + "\n"
}

/// The comparison as CSV.
pub(crate) fn csv(csv: Csv, comparison: &Comparison, options: &DiffOptions) -> String {
    let mut out = MEMBERS.join(",") + "\n";
    for figure in &comparison.figures {
        let fields = members(figure, options).map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => csv.field(&text).into_owned(),
            other => other.to_string(),
        });
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

fn json_side(side: &Side) -> Value {
    json!({
        "file": side.head.file,
        "host": side.head.host,
        "machine": side.head.machine,
        "kernel": side.head.kernel,
        "engine": side.head.engine,
        "producer": side.head.producer,
        "start": side.head.date_for_machines(),
        "events": side.events(),
        "seconds": side.duration() as f64 / 1e9,
        "lost": side.losses.known(side.losses.total()),
        "lost_exact": side.losses.exact,
        "lacking": side.lacking,
    })
}

/// Kind, name, argument and group.
fn words(subject: &Subject) -> [Option<&str>; 4] {
    match subject {
        Subject::Probe(event) => [Some("probe"), Some(event), None, None],
        Subject::Span(name) => [Some("span"), Some(name), None, None],
        Subject::Group { span, group } => [Some("span"), Some(span), None, Some(group)],
        Subject::Argument { event, name } => [Some("argument"), Some(event), Some(name), None],
    }
}

fn members(figure: &Figure, options: &DiffOptions) -> [Value; 17] {
    let [kind, name, argument, group] = words(&figure.subject);
    let (figure_name, value) = match &figure.kind {
        Kind::Rate => ("rate".to_owned(), Value::Null),
        Kind::Count => ("count".to_owned(), Value::Null),
        Kind::Max => ("max".to_owned(), Value::Null),
        Kind::Quantile(thousandths) => (format!("p{}", thousandths / 10), Value::Null),
        Kind::Share(label) => ("share".to_owned(), label.value.clone()),
    };
    let verdict = figure.verdict();
    let verdict_word = verdict.map(|verdict| match verdict {
        Verdict::Beyond => "beyond",
        Verdict::Within => "within",
        Verdict::Unknown => "unknown",
    });
    [
        json!(kind),
        json!(name),
        json!(argument),
        json!(group),
        json!(figure_name),
        value,
        json_number(&figure.a.decimal),
        json_number(&figure.b.decimal),
        json!(figure.a.low),
        json!(figure.a.high),
        json!(figure.b.low),
        json!(figure.b.high),
        json!(figure.change()),
        json!(figure.test.and_then(|test| test.noise)),
        json!(figure.test.and_then(|test| test.score)),
        json!(verdict_word),
        json!(verdict == Some(Verdict::Beyond) && figure.changed_by(options.min)),
    ]
}
