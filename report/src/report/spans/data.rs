//! Spans as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Map, Value, json};
use usdtrec_format::escape::escape_json;

use super::facts::{DurationFacts, Group, SlowFacts, SpanFacts, SpanReport};
use crate::report::groups::json_cell;
use crate::text::csv_field;

/// The report as JSON.
pub(super) fn json(report: &SpanReport) -> String {
    let spans: Vec<Value> = report
        .spans
        .iter()
        .enumerate()
        .map(|(at, span)| {
            let mut object = json_span(span);
            let groups = report.groups.get(at).into_iter().flatten();
            let groups: Vec<Value> = groups.map(|group| json_group(report, group)).collect();
            object.insert("groups".to_owned(), json!(groups));
            object.insert("ungrouped".to_owned(), json!(report.others.get(at)));
            let slowest = report.slowest.get(at).into_iter().flatten();
            let slowest: Vec<Value> = slowest.map(json_slow).collect();
            object.insert("slowest".to_owned(), json!(slowest));
            Value::Object(object)
        })
        .collect();
    escape_json(&json!({ "spans": spans }).to_string()).into_owned() + "\n"
}

/// The members of a span that it has also in the report of all probes.
pub(crate) fn json_span(span: &SpanFacts) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(span.name));
    object.insert("starts".to_owned(), json!(span.starts));
    object.insert("dones".to_owned(), json!(span.dones));
    object.insert("open".to_owned(), json!(span.open));
    object.insert("unmatched".to_owned(), json!(span.unmatched));
    object.insert("key".to_owned(), json!(span.key));
    object.insert(
        "depth".to_owned(),
        json!((span.depth > 0).then_some(span.depth)),
    );
    object.insert("unkeyed".to_owned(), json!(span.unkeyed));
    object.insert("lost".to_owned(), json!(span.lost));
    json_durations(&span.durations, &mut object);
    object
}

/// Appends the figures.
pub(crate) fn json_durations(durations: &DurationFacts, object: &mut Map<String, Value>) {
    object.insert("count".to_owned(), json!(durations.count));
    for (name, ns) in figures(durations) {
        let value = (durations.count > 0).then_some(ns);
        object.insert(name.to_owned(), json!(value));
    }
    object.insert("exact".to_owned(), json!(durations.exact));
}

fn figures(durations: &DurationFacts) -> [(&'static str, u64); 8] {
    [
        (
            "total_ns",
            u64::try_from(durations.total).unwrap_or(u64::MAX),
        ),
        ("mean_ns", durations.mean()),
        ("min_ns", durations.min),
        ("p50_ns", durations.p50),
        ("p90_ns", durations.p90),
        ("p99_ns", durations.p99),
        ("p999_ns", durations.p999),
        ("max_ns", durations.max),
    ]
}

fn json_group(report: &SpanReport, group: &Group) -> Value {
    let mut object = Map::new();
    for (key, cell) in report.by.iter().zip(&group.cells) {
        object.insert(key.clone(), json_cell(cell));
    }
    json_durations(&group.durations, &mut object);
    Value::Object(object)
}

fn json_slow(slow: &SlowFacts) -> Value {
    let SlowFacts { slow, event } = slow;
    let arguments = slow.arguments.iter();
    let arguments: Map<String, Value> = arguments
        .map(|argument| {
            let value = serde_json::from_str(&argument.json);
            (argument.name.clone(), value.unwrap_or_default())
        })
        .collect();
    json!({
        "duration_ns": slow.duration,
        "time_ns": slow.time.0,
        "pid": slow.pid,
        "tid": slow.tid,
        "comm": slow.comm,
        "event": event,
        "args": arguments,
        "offset": slow.offset,
    })
}

/// The report as CSV.
pub(super) fn csv(report: &SpanReport) -> String {
    let keys = report
        .by
        .iter()
        .map(|key| csv_field(key).into_owned() + ",");
    let keys: String = keys.collect();
    let names = figures(&DurationFacts::default()).map(|(name, _)| name);
    let mut out = format!("span,{keys}count,{}\n", names.join(","));
    for (at, span) in report.spans.iter().enumerate() {
        if report.by.is_empty() {
            out.push_str(&line(&span.name, &[], &span.durations));
        }
        for group in report.groups.get(at).into_iter().flatten() {
            out.push_str(&line(&span.name, &[group], &group.durations));
        }
    }
    out
}

fn line(name: &str, group: &[&Group], durations: &DurationFacts) -> String {
    let mut fields = vec![csv_field(name).into_owned()];
    for cell in group.iter().flat_map(|group| &group.cells) {
        fields.push(csv_field(cell.csv()).into_owned());
    }
    fields.push(durations.count.to_string());
    for (_, ns) in figures(durations) {
        fields.push(if durations.count > 0 {
            ns.to_string()
        } else {
            String::new()
        });
    }
    fields.join(",") + "\n"
}
