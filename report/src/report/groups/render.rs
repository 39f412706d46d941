//! Tables of groups: as perf report --stdio prints them, as JSON, as CSV; `report/FIELDS.md` describes members and columns.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use usdtrec_format::escape::{escape, escape_json};

use super::{Cell, Datum, Group, Grouped, Key, MOST_GROUPS, StatFacts, Table};
use crate::report::data::json_number;
use crate::report::look::Look;
use crate::report::numbers::share;
use crate::text::csv_field;

/// perf's tables.
pub(super) fn text(grouped: &Grouped, show_samples: bool, look: Look) -> String {
    let mut out = String::new();
    for line in grouped.head.lines() {
        look.put_remark(&format!("# {line}"), &mut out);
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
        one_table(table, grouped, show_samples, &mut out);
        out.push_str("\n\n");
    }
    out
}

/// Most columns that a cell makes its whole column wide: a longer one only moves what stands behind it.
const WIDEST: usize = 200;

fn one_table(table: &Table, grouped: &Grouped, show_samples: bool, out: &mut String) {
    let keys = &grouped.keys;
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
            let shown = table.rows.iter().take(grouped.top);
            let cells = shown.filter_map(|group| group.cells.get(at));
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
    let figures = Figures::new(table, grouped);
    let _ = writeln!(out, "# Overhead{samples}{}  {heading}", figures.heading());
    let _ = writeln!(
        out,
        "# ........{dots}{}  {}",
        figures.dots(),
        columns(&|at| ".".repeat(widths[at]))
    );
    out.push_str("#\n");
    for group in table.rows.iter().take(grouped.top) {
        let Group { cells, count, .. } = group;
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
        let figures = figures.of(group);
        let _ = writeln!(out, "{overhead:>9.2}%{samples}{figures}  {cells}");
    }
    let more = table.rows.len().saturating_sub(grouped.top);
    if more > 0 {
        let _ = writeln!(out, "# and {more} more groups (--top)");
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

/// The columns of an argument that is summed up.
struct Figures {
    of: Option<String>,
    widths: [usize; 7],
}

impl Figures {
    fn new(table: &Table, grouped: &Grouped) -> Self {
        let of = grouped.value.clone();
        let width = |at: usize| {
            let stats = table.rows.iter().take(grouped.top);
            let stats = stats.filter_map(|group| group.stats.as_ref());
            let lengths = stats.map(|stats| stats.figures[at].len());
            lengths
                .chain([StatFacts::NAMES[at].len()])
                .max()
                .unwrap_or(0)
        };
        Self {
            of,
            widths: std::array::from_fn(width),
        }
    }

    fn columns(&self, cell: impl Fn(usize) -> String) -> String {
        if self.of.is_none() {
            return String::new();
        }
        let cells = self.widths.iter().enumerate();
        cells
            .map(|(at, &width)| format!("  {:>width$}", cell(at)))
            .collect()
    }

    fn heading(&self) -> String {
        self.columns(|at| StatFacts::NAMES[at].to_owned())
    }

    fn dots(&self) -> String {
        self.columns(|at| ".".repeat(self.widths[at]))
    }

    fn of(&self, group: &Group) -> String {
        let figure = |at: usize| group.stats.as_ref().map(|stats| stats.figures[at].clone());
        self.columns(|at| figure(at).unwrap_or_default())
    }
}

/// JSON lines.
pub(super) fn json(grouped: &Grouped) -> String {
    let mut out = String::new();
    for table in &grouped.tables {
        for group in table.rows.iter().take(grouped.top) {
            let Group { cells, count, .. } = group;
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
            if let (Some(name), Some(stats)) = (&grouped.value, &group.stats) {
                object.insert(format!("{name}.count"), json!(stats.count));
                for (figure, text) in StatFacts::NAMES.iter().zip(&stats.figures) {
                    let number = (!text.is_empty()).then(|| json_number(text));
                    object.insert(format!("{name}.{figure}"), json!(number));
                }
                object.insert(format!("{name}.exact"), json!(stats.exact));
            }
            let line = Value::Object(object).to_string();
            let _ = writeln!(out, "{}", escape_json(&line));
        }
    }
    out
}

pub(crate) fn json_cell(cell: &Cell) -> Value {
    match &cell.datum {
        Datum::Same => json!(cell.text),
        Datum::Text(text) => json!(text),
        Datum::Json(value) => value.clone(),
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
    let mut columns: Vec<_> = columns.into_iter().map(csv_field).collect();
    if let Some(name) = &grouped.value {
        let figures = std::iter::once("count").chain(StatFacts::NAMES);
        let figures = figures.chain(["exact"]);
        columns.extend(
            figures.map(|figure| csv_field(&format!("{name}.{figure}")).into_owned().into()),
        );
    }
    let mut out = columns.join(",") + "\n";
    for table in &grouped.tables {
        for group in table.rows.iter().take(grouped.top) {
            let Group { cells, count, .. } = group;
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
                let _ = write!(out, ",{}", csv_field(cell.csv()));
            }
            if let Some(stats) = &group.stats {
                let _ = write!(
                    out,
                    ",{},{},{}",
                    stats.count,
                    stats.figures.join(","),
                    stats.exact
                );
            }
            out.push('\n');
        }
    }
    out
}
