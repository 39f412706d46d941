//! `report --heatmap`: how numbers are spread over time; `report/FIELDS.md` describes its JSON and CSV.

use std::fmt::Write as _;

use foldhash::HashMap;
use serde_json::json;
use usdtrec_format::Value;
use usdtrec_format::escape::{escape, escape_json};

use crate::analysis::question::Subject;
use crate::analysis::span_report as spans;
use crate::analysis::span_report::{NamedSpans, SpanRequest};
use crate::analysis::values::Values;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::Filter;
use crate::stats::log2;
use crate::stats::log2::{Kind, Log2};
use crate::stats::number::{Float, Integer};
use crate::stats::timeline::Timeline;
use crate::trace::session::Session;
use crate::view::bars::shade;
use crate::view::head::Head;
use crate::view::numbers::duration;
use crate::view::report::ReportOptions;
use crate::view::report::data::json_number;
use crate::view::script::Format;
use crate::view::text::form::Form;
use crate::view::text::quoted::Csv;
use crate::view::theme::Look;

/// Columns of a map.
const COLUMNS: usize = 60;

/// Counts by interval and bucket.
pub(crate) type Cells = HashMap<(u32, i32), u64>;

/// A map.
#[derive(Debug)]
struct Map {
    of: String,
    kind: Kind,
    form: Form,
    cells: Cells,
}

/// Counts, and shows the maps.
pub(crate) fn report(
    session: &Session,
    filter: &Filter,
    of: &Subject,
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let timeline = Timeline::divided(session, filter, COLUMNS);
    let mut notices = Notices::new(session);
    let mut remarks = Vec::new();
    let maps = match of {
        Subject::Argument(name) => of_argument(
            session,
            filter,
            (name, timeline, options.human),
            &mut notices,
        )?,
        Subject::Span(question) => {
            let request = SpanRequest {
                session,
                filter,
                question,
                options,
            };
            let found = spans::named(request, Some(timeline), &mut notices)?;
            remarks = found.remarks;
            let one = |spans: NamedSpans| Map {
                of: spans.name,
                kind: Kind::Time,
                form: Form::Plain,
                cells: spans.durations.heat,
            };
            found.named.into_iter().map(one).collect()
        }
    };
    let text = match options.format {
        Format::Text => text(
            &Head::new(session).with(remarks),
            &maps,
            timeline,
            options.look(),
        ),
        Format::Json => json(&maps, timeline),
        format => csv(format.csv(), &maps, timeline),
    };
    Ok((text, notices))
}

fn of_argument(
    session: &Session,
    filter: &Filter,
    (name, timeline, human): (&str, Timeline, bool),
    notices: &mut Notices,
) -> Result<Vec<Map>, ReportError> {
    let otherwise = "is no argument: --rate shows events over time";
    let values = Values::new(session, filter, (name, human), otherwise)?;
    // Integers and floats of one row are maps of their own.
    let none = HashMap::<(usize, bool), Cells>::default;
    let (states, outcome) = values.fold(session, filter, none, |maps, row, value, sample| {
        if let Some((index, float)) = index(value) {
            let column = timeline.place(sample.time) as u32;
            let cells = maps.entry((row, float)).or_default();
            *cells.entry((column, index)).or_default() += 1;
        }
    });
    notices.add(outcome);
    let mut all = none();
    for (map, cells) in states.into_iter().flatten() {
        merge(all.entry(map).or_default(), cells);
    }
    let mut maps: Vec<_> = all.into_iter().collect();
    maps.sort_by_key(|(map, _)| *map);
    let one = |((row, float), cells): ((usize, bool), Cells)| {
        let event = values.rows.rows.get(row).map_or("", |row| &*row.name);
        Map {
            of: format!("{}.{name}", crate::view::report::text::short(event)),
            kind: if float { Kind::Float } else { Kind::Integer },
            form: values.form.clone(),
            cells,
        }
    };
    Ok(maps.into_iter().map(one).collect())
}

/// Adds counts.
pub(crate) fn merge(all: &mut Cells, cells: Cells) {
    for (cell, count) in cells {
        *all.entry(cell).or_default() += count;
    }
}

/// The bucket of a number, and whether it is a float; `None` for what is none.
fn index(value: &Value) -> Option<(i32, bool)> {
    let integer = |number: i128| (Integer(number).index(Kind::Integer), false);
    let float = |number: Option<Float>| Some((number?.index(Kind::Float), true));
    match value {
        Value::Unsigned(number) => Some(integer((*number).into())),
        Value::Signed(number) => Some(integer((*number).into())),
        Value::Float32(number) => float(Float::single(*number)),
        Value::Float64(number) => float(Float::double(*number)),
        _ => None,
    }
}

impl Map {
    /// Its buckets from the greatest numbers down, those between that are empty, too.
    fn buckets(&self) -> Vec<i32> {
        let mut indices: Vec<i32> = self.cells.keys().map(|(_, index)| *index).collect();
        indices.sort_unstable();
        indices.dedup();
        let all = match (indices.first(), indices.last()) {
            (Some(&first), Some(&last)) if last - first <= 64 => (first..=last).collect(),
            _ => indices,
        };
        all.into_iter().rev().collect()
    }

    fn count(&self, column: usize, index: i32) -> u64 {
        let cell = (column as u32, index);
        self.cells.get(&cell).copied().unwrap_or(0)
    }
}

fn text(head: &Head, maps: &[Map], timeline: Timeline, look: Look) -> String {
    let mut out = String::new();
    head.put(look, &mut out);
    if maps.is_empty() {
        out.push_str("\nNo numbers.\n");
    }
    for map in maps {
        let most = map.cells.values().copied().max().unwrap_or(0);
        let _ = writeln!(
            out,
            "\n{}: {} a column, darkest {most} ({} values)",
            escape(&map.of),
            duration(timeline.interval),
            map.cells.values().sum::<u64>()
        );
        let buckets = map.buckets();
        let labels: Vec<String> = buckets
            .iter()
            .map(|&index| log2::label(index, map.kind, &map.form))
            .collect();
        let width = labels
            .iter()
            .map(|label| label.chars().count())
            .max()
            .unwrap_or(0);
        for (index, label) in buckets.into_iter().zip(labels) {
            let cells = 0..timeline.intervals;
            let cells: String = cells
                .map(|column| shade(map.count(column, index), most))
                .collect();
            let _ = writeln!(out, "{label:>width$} │{}", cells.trim_end());
        }
        let end = timeline.begin(timeline.intervals as u64);
        let seconds = |time: u64| format!("{:.3}", time as f64 / 1e9);
        let (from, to) = (seconds(timeline.from), seconds(end));
        let room = COLUMNS.saturating_sub(from.len() + to.len());
        let _ = writeln!(out, "{:width$} └{}", "", "─".repeat(COLUMNS));
        let _ = writeln!(out, "{:width$}  {from}{:room$}{to}", "", "");
    }
    out
}

fn json(maps: &[Map], timeline: Timeline) -> String {
    let mut out = String::new();
    for map in maps {
        let one = |index: i32| {
            let counts = (0..timeline.intervals).map(|column| map.count(column, index));
            json!({
                "from": json_number(&log2::from(index, map.kind)),
                "to": json_number(&log2::from(index + 1, map.kind)),
                "counts": counts.collect::<Vec<u64>>(),
            })
        };
        let line = json!({
            "of": map.of,
            "from_ns": timeline.from,
            "interval_ns": timeline.interval,
            "buckets": map.buckets().into_iter().rev().map(one).collect::<Vec<_>>(),
        });
        out.push_str(&escape_json(&line.to_string()));
        out.push('\n');
    }
    out
}

fn csv(csv: Csv, maps: &[Map], timeline: Timeline) -> String {
    let mut out = "of,time_ns,from,to,count\n".to_owned();
    for map in maps {
        let mut cells: Vec<_> = map.cells.iter().collect();
        cells.sort_unstable();
        for (&(column, index), count) in cells {
            let _ = writeln!(
                out,
                "{},{},{},{},{count}",
                csv.field(&map.of),
                timeline.begin(u64::from(column)),
                log2::from(index, map.kind),
                log2::from(index + 1, map.kind)
            );
        }
    }
    out
}
