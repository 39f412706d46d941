//! Spans as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Map, Value, json};
use usdtrec_analysis::span_report::facts::{
    DurationFacts, OtherSpans, SlowFacts, SpanFacts, SpanGroupFacts, SpanReport,
};
use usdtrec_format::escape::escape_json;

use crate::cells::{Cell, cells, put_cells};
use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// The report as JSON.
pub(crate) fn json(report: &SpanReport) -> String {
    let spans: Vec<Value> = report
        .spans
        .iter()
        .enumerate()
        .map(|(at, span)| {
            let mut object = json_span(span);
            let groups = report.groups.get(at).into_iter().flatten();
            let groups: Vec<Value> = groups.map(|group| json_group(report, group)).collect();
            object.insert("groups".to_owned(), json!(groups));
            let others = report.others.get(at).and_then(Option::as_ref);
            object.insert(
                "ungrouped".to_owned(),
                json!(others.map_or(0, |others| others.durations.count)),
            );
            object.insert("others".to_owned(), json!(others.map(json_others)));
            let slowest = report.slowest.get(at).into_iter().flatten();
            let slowest: Vec<Value> = slowest.map(json_slow).collect();
            object.insert("slowest".to_owned(), json!(slowest));
            Value::Object(object)
        })
        .collect();
    let by = report.by.iter().map(|by| {
        let of = if by.of_end { "end" } else { "begin" };
        json!({ "key": by.name, "of": of })
    });
    let by: Vec<Value> = by.collect();
    escape_json(&json!({ "by": by, "spans": spans }).to_string()).into_owned() + "\n"
}

/// The members of a span, which are the same in the summary of a trace.
pub(crate) fn json_span(span: &SpanFacts) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(span.name));
    object.insert("starts".to_owned(), json!(span.starts));
    object.insert("dones".to_owned(), json!(span.dones));
    object.insert("open".to_owned(), json!(span.counts.open));
    object.insert("unfinished".to_owned(), json!(span.counts.unfinished));
    object.insert("unmatched".to_owned(), json!(span.counts.unmatched));
    object.insert("key".to_owned(), json!(span.key));
    object.insert("agreed".to_owned(), json!(span.agreed));
    object.insert(
        "depth".to_owned(),
        json!((span.counts.depth > 0).then_some(span.counts.depth)),
    );
    object.insert("unkeyed".to_owned(), json!(span.counts.unkeyed));
    object.insert("lost".to_owned(), json!(span.lost));
    json_durations(&span.durations, &mut object);
    object
}

/// Adds the statistics of durations.
pub(crate) fn json_durations(durations: &DurationFacts, object: &mut Map<String, Value>) {
    object.insert("count".to_owned(), json!(durations.count));
    for (name, ns) in figures(durations) {
        let value = ns.filter(|_| durations.count > 0);
        object.insert(name.to_owned(), json!(value));
    }
    object.insert("exact".to_owned(), json!(durations.exact));
}

fn figures(durations: &DurationFacts) -> [(&'static str, Option<u64>); 10] {
    [
        ("total_ns", durations.covered.map(|time| time.total)),
        ("self_ns", durations.covered.map(|time| time.own)),
        ("mean_ns", Some(durations.mean())),
        ("min_ns", Some(durations.min)),
        ("p50_ns", Some(durations.p50)),
        ("p90_ns", Some(durations.p90)),
        ("p99_ns", Some(durations.p99)),
        ("p999_ns", Some(durations.p999)),
        ("max_ns", Some(durations.max)),
        ("sum_ns", Some(durations.sum())),
    ]
}

fn cells_of(report: &SpanReport, group: &SpanGroupFacts) -> Vec<Cell> {
    cells(report.by.iter().map(|by| &by.key), &group.values, false)
}

fn json_group(report: &SpanReport, group: &SpanGroupFacts) -> Value {
    let mut object = Map::new();
    let names = report.by.iter().map(|key| &*key.name);
    put_cells(names, &cells_of(report, group), &mut object);
    json_durations(&group.durations, &mut object);
    Value::Object(object)
}

/// The spans of groups that are not shown.
fn json_others(others: &OtherSpans) -> Value {
    let mut object = Map::new();
    object.insert("groups".to_owned(), json!(others.groups));
    object.insert("doubtful".to_owned(), json!(others.doubtful));
    json_durations(&others.durations, &mut object);
    Value::Object(object)
}

fn json_slow(slow: &SlowFacts) -> Value {
    let SlowFacts { slow, begin } = slow;
    let arguments = begin.arguments.iter();
    let arguments: Map<String, Value> = arguments
        .map(|argument| {
            let mut json = Text::default();
            json.formed_json(&argument.form, &argument.value);
            let value = serde_json::from_str(&json.into_string());
            (argument.name.clone(), value.unwrap_or_default())
        })
        .collect();
    let mut object = json!({
        "duration_ns": slow.duration,
        "time_ns": slow.time.0,
        "pid": begin.pid,
        "tid": begin.tid,
        "comm": begin.comm,
        "event": begin.event,
        "args": arguments,
        "offset": begin.offset,
    });
    let demangled = begin.arguments.iter().filter_map(|argument| {
        let name = argument.form.readable(&argument.value)?;
        Some((argument.name.clone(), json!(name)))
    });
    let demangled: Map<String, Value> = demangled.collect();
    if !demangled.is_empty() {
        object["demangled"] = Value::Object(demangled);
    }
    object
}

/// The report as CSV.
pub(crate) fn csv(csv: Csv, report: &SpanReport) -> String {
    let keys = report
        .by
        .iter()
        .map(|key| csv.field(&key.name).into_owned() + ",");
    let keys: String = keys.collect();
    let names = figures(&DurationFacts::default()).map(|(name, _)| name);
    let others = if report.by.is_empty() { "" } else { "others," };
    let mut out = format!("span,{keys}{others}count,{}\n", names.join(","));
    for (at, span) in report.spans.iter().enumerate() {
        let name = csv.field(&span.name).into_owned();
        if report.by.is_empty() {
            out.push_str(&line(vec![name], &span.durations));
            continue;
        }
        for group in report.groups.get(at).into_iter().flatten() {
            let cells = cells_of(report, group).into_iter();
            let cells = cells.map(|cell| csv.field(cell.csv()).into_owned());
            let fields = std::iter::once(name.clone()).chain(cells);
            let fields = fields.chain(["false".to_owned()]);
            out.push_str(&line(fields.collect(), &group.durations));
        }
        if let Some(others) = report.others.get(at).and_then(Option::as_ref) {
            let mut fields = vec![String::new(); report.by.len() + 2];
            fields[0] = name;
            fields[report.by.len() + 1] = "true".to_owned();
            out.push_str(&line(fields, &others.durations));
        }
    }
    out
}

fn line(mut fields: Vec<String>, durations: &DurationFacts) -> String {
    fields.push(durations.count.to_string());
    for (_, ns) in figures(durations) {
        let shown = ns.filter(|_| durations.count > 0);
        fields.push(shown.map_or_else(String::new, |ns| ns.to_string()));
    }
    fields.join(",") + "\n"
}
