//! Spans as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Value as Json, json};
use usdtrec_analysis::span_report::facts::{
    DurationFacts, SlowFacts, SpanFacts, SpanGroupFacts, SpanReport,
};
use usdtrec_analysis::spans::spent_time::SpentFacts;
use usdtrec_analysis::spans::waits::WaitFacts;
use usdtrec_format::{NoTimeParts, TimePart};

use crate::cells::{self, Cell, cells};
use crate::report::losses::json_recorded;
use crate::text::buffer::Text;
use crate::text::quoted::Csv;

/// The durations with their names, ns; `None` without spans, and if they are not known, because they are of several groups.
fn named(durations: &DurationFacts) -> [(&'static str, Option<u64>); 11] {
    let known = |ns: u64| (durations.count > 0).then_some(ns);
    let covered = durations.covered;
    [
        ("total_ns", covered.and_then(|time| known(time.total))),
        ("self_ns", known(durations.own())),
        ("self_total_ns", covered.and_then(|time| known(time.own))),
        ("mean_ns", known(durations.mean())),
        ("min_ns", known(durations.min)),
        ("p50_ns", known(durations.p50)),
        ("p90_ns", known(durations.p90)),
        ("p99_ns", known(durations.p99)),
        ("p999_ns", known(durations.p999)),
        ("max_ns", known(durations.max)),
        ("sum_ns", known(durations.sum())),
    ]
}

/// What the times were spent on with their names, ns; `None` without spans of which it is known.
fn parts(spent: Option<SpentFacts>) -> impl Iterator<Item = (&'static str, Option<u64>)> {
    let spent = spent.filter(|spent| spent.known > 0);
    let whole = TimePart::ALL.map(|part| (part.spec().column, spent.map(|spent| spent.part(part))));
    let own = TimePart::ALL.map(|part| {
        let own = spent.and_then(|spent| spent.own_part(part));
        (part.spec().own_column, own)
    });
    whole.into_iter().chain(own)
}

fn json_parts(spent: SpentFacts) -> Json {
    let mut row = json!({"known": spent.known});
    for (name, ns) in parts(Some(spent)) {
        row[name] = ns.into();
    }
    for (reason, count) in spent.unknown() {
        row["unknown"][reason.name()] = count.into();
    }
    row
}

fn cells_of(report: &SpanReport, group: &SpanGroupFacts) -> Vec<Cell> {
    cells(report.by.iter().map(|by| &by.key), &group.values, false)
}

/// The report as JSON.
pub(crate) fn json(report: &SpanReport) -> Json {
    let by = report.by.iter().map(|by| {
        let of = if by.of_end { "end" } else { "begin" };
        json!({"key": by.name, "of": of})
    });
    let spans = report.spans.iter().enumerate().map(|(at, span)| {
        let mut row = json_span(span);
        let groups = report.groups.get(at).into_iter().flatten();
        let groups = groups.map(|group| {
            let names = report.by.iter().map(|by| &*by.name);
            let mut row = cells::json(names, cells_of(report, group));
            add_durations(&group.durations, &mut row);
            row
        });
        row["groups"] = groups.collect();
        row["ungrouped"] = 0.into();
        row["others"] = Json::Null;
        if let Some(others) = report.others.get(at).and_then(Option::as_ref) {
            row["ungrouped"] = others.durations.count.into();
            row["others"] = json!({"groups": others.groups, "doubtful": others.doubtful});
            add_durations(&others.durations, &mut row["others"]);
        }
        let slowest = report.slowest.get(at).into_iter().flatten();
        row["slowest"] = slowest.map(json_slow).collect();
        row
    });
    let spans: Json = spans.collect();
    let mut object = json!({"by": by.collect::<Json>()});
    object["spans"] = spans;
    object
}

/// What spans are, and how long they lasted.
pub(crate) fn json_span(span: &SpanFacts) -> Json {
    let counts = &span.counts;
    let mut row = json!({
        "name": span.name,
        "starts": span.starts,
        "dones": span.dones,
        "open": counts.open,
        "unfinished": counts.unfinished,
        "unmatched": counts.unmatched,
        "key": span.key,
        "agreed": span.agreed,
        "depth": (counts.depth > 0).then_some(counts.depth),
        "unkeyed": counts.unkeyed,
        "lost": span.lost,
    });
    if let Some(part) = &span.part {
        let mut paused = json_recorded(part);
        paused["estimated_count"] = part.estimate(span.durations.count).into();
        paused["begins"] = counts.paused_begins.into();
        paused["ends"] = counts.paused_ends.into();
        row["paused"] = paused;
    }
    add_durations(&span.durations, &mut row);
    row
}

fn add_durations(durations: &DurationFacts, row: &mut Json) {
    row["count"] = durations.count.into();
    for (name, ns) in named(durations) {
        row[name] = ns.into();
    }
    row["exact"] = durations.exact.into();
    if let Some(spent) = durations.spent {
        row["parts"] = json_parts(spent);
    }
    if let Some(waits) = &durations.waits {
        let waits = waits
            .iter()
            .map(|WaitFacts { wait, sum }| json!({"wait": wait, "ns": sum.ns, "count": sum.count}));
        row["waits"] = waits.collect();
    }
}

/// One of the slowest spans. Its arguments are as `script --format json` has them.
fn json_slow(SlowFacts { slow, begin }: &SlowFacts) -> Json {
    let mut row = json!({
        "duration_ns": slow.duration,
        "time_ns": slow.time.0,
        "pid": begin.pid,
        "tid": begin.tid,
        "comm": begin.comm,
        "event": begin.event,
        "args": {},
        "offset": begin.offset,
    });
    if slow.parts != Err(NoTimeParts::NotRecorded) {
        row["parts"] = slow.parts.map_or(Json::Null, |parts| {
            let all = TimePart::ALL.iter();
            all.map(|part| (part.spec().column, parts.get(*part)))
                .collect()
        });
    }
    for argument in &begin.arguments {
        let mut value = Text::default();
        value.formed_json(&argument.form, &argument.value);
        let value = serde_json::from_str(&value.into_string());
        row["args"][&argument.name] = value.unwrap_or_default();
        if let Some(name) = argument.form.readable(&argument.value) {
            row["demangled"][&argument.name] = name.into();
        }
    }
    row
}

/// The report as CSV.
pub(crate) fn csv(csv: Csv, report: &SpanReport) -> String {
    let keys = report
        .by
        .iter()
        .map(|key| csv.field(&key.name).into_owned() + ",");
    let keys: String = keys.collect();
    let names = named(&DurationFacts::default()).map(|(name, _)| name);
    let others = if report.by.is_empty() { "" } else { "others," };
    let mut spans = report.spans.iter();
    let has_parts = spans.any(|span| span.durations.spent.is_some());
    let of_parts = match has_parts {
        true => {
            let names = parts(None).map(|(name, _)| name);
            format!(",{},parts_known", names.collect::<Vec<_>>().join(","))
        }
        false => String::new(),
    };
    let mut out = format!("span,{keys}{others}count,{}{of_parts}\n", names.join(","));
    let line = |fields, durations| line(fields, durations, has_parts);
    for (at, span) in report.spans.iter().enumerate() {
        let name = csv.field(&span.name).into_owned();
        if report.by.is_empty() {
            out.push_str(&line(vec![name], &span.durations));
            continue;
        }
        for group in report.groups.get(at).into_iter().flatten() {
            let cells = cells_of(report, group).into_iter();
            let cells = cells.map(|cell| cell.csv(csv).into_owned());
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

fn line(mut fields: Vec<String>, durations: &DurationFacts, has_parts: bool) -> String {
    let cell = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
    fields.push(durations.count.to_string());
    fields.extend(named(durations).map(|(_, ns)| cell(ns)));
    if has_parts {
        fields.extend(parts(durations.spent).map(|(_, ns)| cell(ns)));
        fields.push(cell(Some(durations.spent.map_or(0, |spent| spent.known))));
    }
    fields.join(",") + "\n"
}
