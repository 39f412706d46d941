//! A comparison as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Map, Value, json};
use usdtrec_analysis::diff::FALSE_ALARMS;
use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::metric::{
    Estimate, Metric, MetricKind, MetricSubject, ShareOf, Verdict,
};
use usdtrec_analysis::diff::recording::ComparedRecording;
use usdtrec_analysis::diff::slices::SLICES;
use usdtrec_format::escape::escape_json;

use crate::diff::names::{self, left_out, ordered, reason};
use crate::diff::options::DiffOptions;
use crate::diff::spent;
use crate::head::date_for_machines;
use crate::text::quoted::Csv;
use crate::text::scalar;

/// Members of a figure, in their order.
const MEMBERS: &str = "\
    kind name argument group figure value a b a_low a_high b_low b_high change change_low \
    change_high noise score verdict shown";

/// The place of `value` among them.
const VALUE: usize = 5;

/// The comparison as JSON.
pub(crate) fn json(comparison: &Comparison, options: &DiffOptions) -> String {
    let figures = ordered(comparison).into_iter();
    let figures: Vec<Value> = figures
        .map(|figure| {
            let members = MEMBERS.split(' ').zip(members(figure, options));
            let members = members.map(|(name, value)| (name.to_owned(), value));
            let mut object = members.collect::<Map<_, _>>();
            if let Some(name) = readable(figure) {
                object.insert("demangled".to_owned(), name.into());
            }
            Value::Object(object)
        })
        .collect();
    let left_out = left_out(comparison).into_iter();
    let left_out: Vec<Value> = left_out
        .map(|left| {
            let [kind, name, argument, group] = words(&left.subject);
            json!({"kind": kind, "name": name, "argument": argument, "group": group, "reason": reason(&left.reason)})
        })
        .collect();
    let mut object = json!({
        "a": json_side(&comparison.a),
        "b": json_side(&comparison.b),
        "slices": SLICES,
        "false_alarms": FALSE_ALARMS,
        "tested": comparison.tested,
        "figures": figures,
        "left_out": left_out,
    });
    if let Some(parts) = spent::json(comparison, words) {
        object["parts"] = parts;
    }
    escape_json(&object.to_string()).into_owned() + "\n"
}

/// The comparison as CSV.
pub(crate) fn csv(csv: Csv, comparison: &Comparison, options: &DiffOptions) -> String {
    let mut out = MEMBERS.replace(' ', ",") + "\n";
    for figure in ordered(comparison) {
        let mut members = members(figure, options);
        if let (Some(name), Some(value)) = (readable(figure), members.get_mut(VALUE)) {
            *value = name.into();
        }
        let fields = members.map(|value| match value {
            Value::Null => String::new(),
            Value::String(string) => csv.string(&string).into_owned(),
            other => other.to_string(),
        });
        out.push_str(&fields.join(","));
        out.push('\n');
    }
    out
}

fn json_side(side: &ComparedRecording) -> Value {
    json!({
        "file": side.origin.file,
        "host": side.origin.host,
        "machine": side.origin.machine,
        "kernel": side.origin.kernel,
        "engine": side.origin.engine,
        "producer": side.origin.producer,
        "start": date_for_machines(&side.origin),
        "events": side.events(),
        "seconds": side.duration() as f64 / 1e9,
        "lost": side.losses.ledger.known_total(),
        "lost_exact": side.losses.ledger.is_exact(),
        "lacking": side.lacking.as_ref().map(ToString::to_string),
    })
}

/// Kind, name, argument and group.
fn words(subject: &MetricSubject) -> [Option<String>; 4] {
    let some = |text: &str| Some(text.to_owned());
    match subject {
        MetricSubject::Probe(event) => [some("probe"), some(event), None, None],
        MetricSubject::Span(name) => [some("span"), some(name), None, None],
        MetricSubject::Group { span, group } => [
            some("span"),
            some(span),
            None,
            Some(names::group(group, false)),
        ],
        MetricSubject::Argument { event, name } => {
            [some("argument"), some(event), some(name), None]
        }
    }
}

/// A value that has a share; null for hits without a value.
fn json_label(of: &ShareOf) -> Value {
    match of {
        ShareOf::Missing => Value::Null,
        ShareOf::Number { number, .. } => scalar::json(*number),
        ShareOf::String { string, .. } => String::from_utf8_lossy(string).into(),
    }
}

/// The readable form of the value that a share is of, if that is a mangled name.
fn readable(metric: &Metric) -> Option<String> {
    match &metric.kind {
        MetricKind::Share(ShareOf::String { string, form }) => form.readable_string(string),
        _ => None,
    }
}

fn json_amount(amount: &Estimate) -> Value {
    match amount.number {
        Some(number) => scalar::json(number),
        None => scalar::json_of_decimal(&amount.value.to_string()),
    }
}

fn members(figure: &Metric, options: &DiffOptions) -> [Value; 19] {
    let [kind, name, argument, group] = words(&figure.subject);
    let (figure_name, value) = match &figure.kind {
        MetricKind::Rate => ("rate".to_owned(), Value::Null),
        MetricKind::Count => ("count".to_owned(), Value::Null),
        MetricKind::Max => ("max".to_owned(), Value::Null),
        MetricKind::Quantile(at) => (format!("p{}", at.thousandths / 10), Value::Null),
        MetricKind::Share(of) => ("share".to_owned(), json_label(of)),
    };
    let relative =
        |limit: Option<f64>| Some(limit? / figure.a.value).filter(|_| figure.a.value > 0.0);
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
        json_amount(&figure.a),
        json_amount(&figure.b),
        json!(figure.a.low),
        json!(figure.a.high),
        json!(figure.b.low),
        json!(figure.b.high),
        json!(figure.change()),
        json!(figure.test.and_then(|test| relative(test.low))),
        json!(figure.test.and_then(|test| relative(test.high))),
        json!(figure.test.and_then(|test| test.noise)),
        json!(figure.test.and_then(|test| test.score)),
        json!(verdict_word),
        json!(verdict == Some(Verdict::Beyond) && figure.changed_by(options.min)),
    ]
}
