//! Tables of groups: as perf report --stdio prints them, as JSON, as CSV.
//!
//! JSON has an object on a line for each group: `overhead` (0 to 1, of the table's periods), `samples`, `event` if
//! the groups are counted event by event, and each key by its name: numbers where they are, text else,
//! `null` where an event has no such argument or it is missing. CSV has the same as columns, `event` first.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use usdtrec_format::escape::{escape, escape_json};

use super::{Cell, Datum, Grouped, Key, MOST_GROUPS, Table};
use crate::report::data::json_number;
use crate::report::numbers::share;
use crate::text::csv_field;

/// perf's tables.
pub(super) fn text(grouped: &Grouped, show_samples: bool) -> String {
    let mut out = String::new();
    for line in grouped.head.lines() {
        let _ = writeln!(out, "# {line}");
    }
    let at_least = if grouped.losses.exact {
        ""
    } else {
        "at least "
    };
    let _ = writeln!(
        out,
        "#\n# Total Lost Samples: {at_least}{}\n#",
        grouped.losses.total()
    );
    for table in grouped
        .tables
        .iter()
        .filter(|table| table.total.samples > 0)
    {
        one_table(table, &grouped.keys, show_samples, &mut out);
        out.push_str("\n\n");
    }
    out
}

/// Most columns that a cell makes its whole column wide: a longer one only moves what stands behind it.
const WIDEST: usize = 200;

fn one_table(table: &Table, keys: &[Key], show_samples: bool, out: &mut String) {
    let of_event = match &table.event {
        Some(event) => format!("  of event '{}'", escape(event)),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "# Samples: {}{of_event}\n# Event count (approx.): {}\n#",
        table.total.samples, table.total.weight
    );
    let widths: Vec<usize> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let cells = table.rows.iter().filter_map(|(cells, _)| cells.get(at));
            let lengths = cells.map(|cell| cell.text.chars().count());
            let widest = lengths.chain([key.heading().chars().count()]).max();
            widest.unwrap_or(0).min(WIDEST)
        })
        .collect();
    let samples = if show_samples { "       Samples" } else { "" };
    let dots = if show_samples { "  ............" } else { "" };
    let columns = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..keys.len()).map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heading = columns(&|at| format!("{:1$}", escape(keys[at].heading()), widths[at]));
    let _ = writeln!(out, "# Overhead{samples}  {heading}");
    let _ = writeln!(
        out,
        "# ........{dots}  {}",
        columns(&|at| ".".repeat(widths[at]))
    );
    out.push_str("#\n");
    for (cells, count) in &table.rows {
        let overhead = 100.0 * share(count.weight, table.total.weight);
        let cells = columns(&|at| {
            let cell = cells.get(at);
            let text = cell.map_or("", |cell| &cell.text);
            let right = cell.is_some_and(
                |cell| matches!(&cell.datum, Datum::Number(number) if *number == cell.text),
            );
            let width = widths[at];
            if right {
                format!("{text:>width$}")
            } else {
                format!("{text:width$}")
            }
        });
        let samples = if show_samples {
            format!("  {:>12}", count.samples)
        } else {
            String::new()
        };
        let _ = writeln!(out, "{overhead:>9.2}%{samples}  {cells}");
    }
    if table.others.samples > 0 {
        let overhead = 100.0 * share(table.others.weight, table.total.weight);
        let _ = writeln!(
            out,
            "{overhead:>9.2}%  other groups than the {MOST_GROUPS} that were met first: {} samples",
            table.others.samples
        );
    }
}

/// JSON lines.
pub(super) fn json(grouped: &Grouped) -> String {
    let mut out = String::new();
    for table in &grouped.tables {
        for (cells, count) in &table.rows {
            let mut object = Map::new();
            object.insert(
                "overhead".to_owned(),
                json!(share(count.weight, table.total.weight)),
            );
            object.insert("samples".to_owned(), json!(count.samples));
            if let Some(event) = &table.event {
                object.insert("event".to_owned(), json!(event));
            }
            for (key, cell) in grouped.keys.iter().zip(cells) {
                object.insert(key.name().to_owned(), json_cell(cell));
            }
            let line = Value::Object(object).to_string();
            let _ = writeln!(out, "{}", escape_json(&line));
        }
    }
    out
}

fn json_cell(cell: &Cell) -> Value {
    match &cell.datum {
        Datum::Same => json!(cell.text),
        Datum::Text(text) => json!(text),
        Datum::Number(number) => json_number(number),
        Datum::None => Value::Null,
    }
}

/// CSV.
pub(super) fn csv(grouped: &Grouped) -> String {
    let by_event = grouped.tables.iter().any(|table| table.event.is_some());
    let mut columns: Vec<&str> = if by_event { vec!["event"] } else { Vec::new() };
    columns.extend(["overhead", "samples"]);
    columns.extend(grouped.keys.iter().map(Key::name));
    let columns: Vec<_> = columns.into_iter().map(csv_field).collect();
    let mut out = columns.join(",") + "\n";
    for table in &grouped.tables {
        for (cells, count) in &table.rows {
            if let Some(event) = &table.event {
                let _ = write!(out, "{},", csv_field(event));
            }
            let _ = write!(
                out,
                "{},{}",
                share(count.weight, table.total.weight),
                count.samples
            );
            for cell in cells {
                let text = match &cell.datum {
                    Datum::Same => &*cell.text,
                    Datum::Text(text) | Datum::Number(text) => text,
                    Datum::None => "",
                };
                let _ = write!(out, ",{}", csv_field(text));
            }
            out.push('\n');
        }
    }
    out
}
