//! Tables of groups: as perf report --stdio prints them, and as JSON and CSV; `report/FIELDS.md` describes members and columns.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::groups::stats::{Sum, ValueFacts};
use usdtrec_analysis::groups::table::SampleCount;
use usdtrec_analysis::groups::{GroupTable, Grouped, OtherGroups, SampleGroup};
use usdtrec_analysis::question::GroupOrder;
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_analysis::stats::ratio::share;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;

use crate::answer_style::AnswerStyle;
use crate::cells::{self, Cell, cells};
use crate::columns::{left, right};
use crate::head;
use crate::hints::{HintWords, more_groups};
use crate::text::buffer::Text;
use crate::text::quoted::Csv;
use crate::text::scalar::{decimal, json_of_decimal, near};

/// Names of the statistics of an argument.
const NAMES: [&str; 7] = ["sum", "mean", "min", "p50", "p90", "p99", "max"];

/// The statistics in decimal, in the order of [`NAMES`]; empty texts if the argument has no numbers.
pub(crate) fn figures(stats: &ValueFacts) -> [String; 7] {
    let Some(figures) = &stats.figures else {
        return Default::default();
    };
    let sum = match figures.sum {
        Sum::Integers(sum) => sum.to_string(),
        Sum::Floats(sum) => float(sum),
    };
    let [min, p50] = [figures.min, figures.p50].map(decimal);
    let [p90, p99, max] = [figures.p90, figures.p99, figures.max].map(decimal);
    [sum, float(figures.mean), min, p50, p90, p99, max]
}

/// The statistics with as many digits as people need, and as they have.
fn shown_figures(stats: &ValueFacts) -> [String; 7] {
    let mut shown = figures(stats);
    let Some(figures) = &stats.figures else {
        return shown;
    };
    let [_, mean, _, p50, p90, p99, _] = &mut shown;
    if let Sum::Integers(_) = figures.sum {
        *mean = decimals(figures.mean);
    }
    if !stats.exact {
        for (shown, number) in [(p50, figures.p50), (p90, figures.p90), (p99, figures.p99)] {
            *shown = near(number, figures.min..=figures.max, &Form::Plain);
        }
    }
    shown
}

pub(crate) fn float(number: f64) -> String {
    let mut text = Text::default();
    text.float64(number);
    text.into_string()
}

/// A number with a decimal, or with three digits if it is less than 1.
pub(crate) fn decimals(number: f64) -> String {
    let digits = match number.abs() {
        magnitude if magnitude > 0.0 && magnitude < 1.0 => 2 - magnitude.log10().floor() as i32,
        _ => 1,
    };
    format!("{number:.*}", usize::try_from(digits).unwrap_or(1))
}

/// A bound in decimal.
pub(crate) fn bound(bound: Sum) -> String {
    match bound {
        Sum::Integers(bound) => bound.to_string(),
        Sum::Floats(bound) => float(bound),
    }
}

/// Tables as `perf report --stdio` prints them, one for each event.
pub(crate) fn text(grouped: &Grouped, style: AnswerStyle) -> String {
    let theme = style.theme;
    let mut out = String::new();
    for line in head::lines(&grouped.origin) {
        theme.put_remark(&format!("# {line}"), &mut out);
    }
    let losses = &grouped.losses;
    let lost = match losses.known_total() {
        None => "?".to_owned(),
        Some(total) if losses.is_exact() => total.to_string(),
        Some(total) => format!("at least {total}"),
    };
    let _ = writeln!(out, "#\n# Total Lost Samples: {lost}\n#");
    for table in grouped
        .tables
        .iter()
        .filter(|table| table.total.samples > 0)
    {
        one_table(table, grouped, style, &mut out);
        out.push_str("\n\n");
    }
    out
}

/// Maximum width of a column. A longer cell moves what follows it in its line.
const WIDEST: usize = 200;

fn one_table(table: &GroupTable, grouped: &Grouped, style: AnswerStyle, out: &mut String) {
    let AnswerStyle { hints, .. } = style;
    let keys = &grouped.keys;
    let cells_of = |group: &SampleGroup| cells(keys, &group.values, true);
    let rows: Vec<(Vec<Cell>, &SampleGroup)> = table
        .rows
        .iter()
        .map(|group| (cells_of(group), group))
        .collect();
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
            let cells = rows.iter().filter_map(|(cells, _)| cells.get(at));
            let lengths = cells.map(|cell| cell.text.width());
            let widest = lengths.chain([key.heading().width()]).max();
            widest.unwrap_or(0).min(WIDEST)
        })
        .collect();
    let samples = "       Samples";
    let dots = "  ............";
    let columns = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..keys.len()).map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heading = columns(&|at| left(&escape(keys[at].heading()), widths[at]));
    let figures = Columns::new(table, grouped);
    let _ = writeln!(out, "# Overhead{samples}{}  {heading}", figures.heading());
    let _ = writeln!(
        out,
        "# ........{dots}{}  {}",
        figures.dots(),
        columns(&|at| ".".repeat(widths[at]))
    );
    out.push_str("#\n");
    for (cells, group) in &rows {
        let count = group.count;
        let overhead = 100.0 * share(count.weight, table.total.weight);
        let cells = columns(&|at| {
            let cell = cells.get(at);
            let text = cell.map_or("", |cell| &cell.text);
            match cell.is_some_and(Cell::is_number) {
                true => right(text, widths[at]),
                false => left(text, widths[at]),
            }
        });
        let samples = format!("  {:>12}", count.samples);
        let figures = figures.line(group.stats.as_ref());
        let _ = writeln!(out, "{overhead:>9.2}%{samples}{figures}  {cells}");
    }
    if let Some(others) = &table.others {
        put_others(others, table, grouped, &figures, hints, out);
    }
}

/// The line of groups that are not shown.
fn put_others(
    others: &OtherGroups,
    table: &GroupTable,
    grouped: &Grouped,
    figures: &Columns,
    hints: HintWords,
    out: &mut String,
) {
    let overhead = 100.0 * share(others.count.weight, table.total.weight);
    let samples = format!("  {:>12}", others.count.samples);
    let figures = figures.line(others.stats.as_ref());
    let name = more_groups(others.groups, hints);
    let _ = writeln!(out, "{overhead:>9.2}%{samples}{figures}  {name}");
    if let Some(most) = others.doubtful {
        let most = bound(most);
        let of = match &grouped.value {
            Some(value) if grouped.order != GroupOrder::Count => {
                format!("{} of {}", grouped.order.name(), escape(value))
            }
            _ => "event count".to_owned(),
        };
        let _ = writeln!(
            out,
            "#\n# WARNING: there were too many groups to keep all: one that is not shown may have {of} up to {most}"
        );
    }
}

/// The columns with the statistics of an argument.
struct Columns {
    of: Option<String>,
    widths: [usize; 7],
}

impl Columns {
    fn new(table: &GroupTable, grouped: &Grouped) -> Self {
        let of = grouped.value.clone();
        let width = |at: usize| {
            let stats = table.rows.iter();
            let stats = stats.filter_map(|group| group.stats.as_ref());
            let others = table.others.as_ref();
            let stats = stats.chain(others.and_then(|others| others.stats.as_ref()));
            let lengths = stats.map(|stats| shown_figures(stats)[at].len());
            lengths.chain([NAMES[at].len()]).max().unwrap_or(0)
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
        self.columns(|at| NAMES[at].to_owned())
    }

    fn dots(&self) -> String {
        self.columns(|at| ".".repeat(self.widths[at]))
    }

    fn line(&self, stats: Option<&ValueFacts>) -> String {
        let figures = stats.map(shown_figures).unwrap_or_default();
        self.columns(|at| figures[at].clone())
    }
}

/// An object for each group, and for those that are not shown.
pub(crate) fn json(grouped: &Grouped) -> Json {
    let names = || grouped.keys.iter().map(Key::name);
    let mut all = Vec::new();
    for table in &grouped.tables {
        let mut push = |mut row: Json, count: SampleCount, stats: Option<&ValueFacts>| {
            row["overhead"] = share(count.weight, table.total.weight).into();
            row["samples"] = count.samples.into();
            if let Some(event) = &table.event {
                row["event"] = json!(event);
            }
            if let Some((name, stats)) = grouped.value.as_ref().zip(stats) {
                row[format!("{name}.count")] = stats.count.into();
                for (figure, number) in NAMES.iter().zip(figures(stats)) {
                    row[format!("{name}.{figure}")] = json_of_decimal(&number);
                }
                row[format!("{name}.exact")] = stats.exact.into();
            }
            all.push(row);
        };
        for group in &table.rows {
            let row = cells::json(names(), cells(&grouped.keys, &group.values, false));
            push(row, group.count, group.stats.as_ref());
        }
        if let Some(others) = &table.others {
            let mut row = cells::json_without_values(names());
            row["others"] = true.into();
            row["groups"] = others.groups.into();
            row["doubtful"] = json!(others.doubtful.map(|most| json_of_decimal(&bound(most))));
            push(row, others.count, others.stats.as_ref());
        }
    }
    all.into()
}

/// A header line, and a line for each group.
pub(crate) fn csv(csv: Csv, grouped: &Grouped) -> String {
    let by_event = grouped.tables.iter().any(|table| table.event.is_some());
    let mut columns: Vec<&str> = if by_event { vec!["event"] } else { Vec::new() };
    columns.extend(["overhead", "samples"]);
    columns.extend(grouped.keys.iter().map(Key::name));
    let mut columns: Vec<_> = columns.into_iter().map(|name| csv.field(name)).collect();
    if let Some(name) = &grouped.value {
        let figures = std::iter::once("count").chain(NAMES);
        let figures = figures.chain(["exact"]);
        columns.extend(
            figures.map(|figure| csv.field(&format!("{name}.{figure}")).into_owned().into()),
        );
    }
    columns.extend(["others", "doubtful"].map(Into::into));
    let mut out = columns.join(",") + "\n";
    for table in &grouped.tables {
        let put =
            |count: SampleCount, stats: Option<&ValueFacts>, cells: &[Cow<'_, str>], end: &str| {
                let mut line = String::new();
                if let Some(event) = &table.event {
                    let _ = write!(line, "{},", csv.field(event));
                }
                let overhead = share(count.weight, table.total.weight);
                let _ = write!(line, "{overhead},{}", count.samples);
                for cell in cells {
                    line.extend([",", &**cell]);
                }
                if let Some(stats) = stats {
                    let figures = figures(stats).join(",");
                    let _ = write!(line, ",{},{figures},{}", stats.count, stats.exact);
                }
                line + end
            };
        for group in &table.rows {
            let cells = cells(&grouped.keys, &group.values, false);
            let cells: Vec<Cow<'_, str>> = cells.iter().map(|cell| cell.csv(csv)).collect();
            let stats = group.stats.as_ref();
            out.push_str(&put(group.count, stats, &cells, ",false,\n"));
        }
        if let Some(others) = &table.others {
            let end = format!(",true,{}\n", others.doubtful.map(bound).unwrap_or_default());
            let cells = vec![Cow::Borrowed(""); grouped.keys.len()];
            out.push_str(&put(others.count, others.stats.as_ref(), &cells, &end));
        }
    }
    out
}
