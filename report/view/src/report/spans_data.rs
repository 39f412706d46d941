//! Spans as CSV; `report/FIELDS.md` describes columns.

use usdtrec_analysis::span_report::facts::{DurationFacts, SpanGroupFacts, SpanReport};

use crate::answer::spans::DurationStatistics;
use crate::cells::{Cell, cells};
use crate::text::quoted::Csv;

fn cells_of(report: &SpanReport, group: &SpanGroupFacts) -> Vec<Cell> {
    cells(report.by.iter().map(|by| &by.key), &group.values, false)
}

/// The report as CSV.
pub(crate) fn csv(csv: Csv, report: &SpanReport) -> String {
    let keys = report
        .by
        .iter()
        .map(|key| csv.field(&key.name).into_owned() + ",");
    let keys: String = keys.collect();
    let names = DurationStatistics::default()
        .columns()
        .map(|(name, _)| name);
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

fn line(mut fields: Vec<String>, durations: &DurationFacts) -> String {
    fields.push(durations.count.to_string());
    for (_, ns) in DurationStatistics::new(durations).columns() {
        fields.push(ns.map_or_else(String::new, |ns| ns.to_string()));
    }
    fields.join(",") + "\n"
}
