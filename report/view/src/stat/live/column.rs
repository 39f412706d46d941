//! The columns of a table that is shown again and again.

use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::counted_numbers::NumberFacts;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::event_name::short_name;

use super::super::StatSpans;
use super::super::durations::NANOSECONDS;
use super::super::key::StatKey;
use super::super::numbers::StatArgument;
use super::super::parts::{self, SpanParts};
use super::super::snapshot::{SnapshotRow, StatSnapshot};
use crate::bars::sparkline;
use crate::fit::Width;
use crate::numbers::{duration, rate};
use crate::table::TableCell;

/// Number of intervals of which the hits of each row are kept.
pub const HISTORY: usize = 60;
/// The width to which names and texts are cut at least.
const MIN_TEXT: usize = 8;
/// The width of numbers at least, so that tables do not jump when they grow.
const MIN_NUMBER: usize = 7;

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    /// The cells, by row.
    pub(super) cells: Vec<TableCell>,
    /// Whether its cells can be cut.
    is_text: bool,
}

impl Column {
    fn texts(name: &str, cells: impl Iterator<Item = TableCell>) -> Self {
        Self {
            name: escape(name).into_owned(),
            cells: cells.collect(),
            is_text: true,
        }
    }

    fn numbers(name: &str, cells: impl Iterator<Item = TableCell>) -> Self {
        Self {
            is_text: false,
            ..Self::texts(name, cells)
        }
    }

    /// Whether its heading is aligned as that of numbers: as its first cell.
    pub(super) fn is_number(&self) -> bool {
        let first = self.cells.first();
        first.map_or(!self.is_text, TableCell::is_number)
    }

    /// How wide it is, and can be.
    pub(super) fn width(&self) -> Width {
        let cells = self.cells.iter().map(|cell| cell.shown().width());
        let widest = cells.chain([self.name.width()]).max().unwrap_or(0);
        match self.is_text {
            true => Width {
                natural: widest,
                least: widest.min(MIN_TEXT),
            },
            false => Width::fixed(widest.max(MIN_NUMBER)),
        }
    }
}

/// What the columns of a table are of.
pub(super) struct ColumnChoice<'t> {
    /// Names of the keys; empty if probes are not divided into groups.
    pub(super) keys: &'t [String],
    /// The arguments whose numbers are shown.
    pub(super) measured: &'t [StatArgument],
    /// How spans are shown; `None` if there are none.
    pub(super) spans: Option<StatSpans>,
}

impl ColumnChoice<'_> {
    /// The columns of rows, without that of the last intervals.
    pub(super) fn columns(
        &self,
        rows: &[&SnapshotRow],
        snapshot: &StatSnapshot,
        with_probes: bool,
    ) -> Vec<Column> {
        let mut columns = Vec::new();
        if with_probes {
            let names = rows.iter().map(|row| short_name(&row.event).to_owned());
            let of_spans = rows.iter().all(|row| row.is_span);
            let name = if self.spans.is_some() && of_spans {
                "Span"
            } else {
                "Probe"
            };
            columns.push(Column::texts(name, names.map(TableCell::Code)));
        }
        for (place, name) in self.keys.iter().enumerate() {
            columns.push(Column::texts(name, rows.iter().map(|row| key(row, place))));
        }
        let interval = u64::try_from(snapshot.interval.as_nanos()).unwrap_or(u64::MAX);
        let counts = |number: fn(&SnapshotRow) -> u64| {
            let numbers = rows.iter().map(move |row| number(row));
            numbers.map(TableCell::count)
        };
        columns.extend([
            Column::numbers(
                if self.spans.is_some() {
                    "Count"
                } else {
                    "Events"
                },
                counts(|row| row.interval.count),
            ),
            Column::numbers(
                "/s",
                rows.iter().map(|row| {
                    let count = row.interval.count;
                    TableCell::number(rate(count, interval), count)
                }),
            ),
            Column::numbers("Total", counts(|row| row.total.count)),
        ]);
        if let Some(spans) = self.spans {
            put_durations(spans, rows, &mut columns);
        }
        self.put_figures(rows, snapshot, &mut columns);
        // Groups lose nothing.
        if self.keys.is_empty() || snapshot.lost() > 0 {
            columns.push(Column::numbers("Lost", counts(|row| row.total.lost)));
        }
        columns
    }

    /// Appends figures of the numbers in the interval.
    fn put_figures(
        &self,
        rows: &[&SnapshotRow],
        snapshot: &StatSnapshot,
        columns: &mut Vec<Column>,
    ) {
        let is_only = self.measured.len() == 1;
        for (place, argument) in self.measured.iter().enumerate() {
            let facts = |row: &&SnapshotRow| {
                let numbers = row.interval.numbers.get(place).filter(|_| !row.is_span)?;
                Some(numbers.as_ref()?.facts())
            };
            let facts: Vec<Option<NumberFacts>> = rows.iter().map(facts).collect();
            for figure in argument.live_figures() {
                let cells = rows.iter().zip(&facts).map(|(row, facts)| {
                    let argument = snapshot.argument(&row.event, place);
                    let form = argument.map(Form::new).unwrap_or_default();
                    figure.cell_in(&form, facts.as_ref())
                });
                let name = argument.column(*figure, is_only);
                columns.push(Column::numbers(&name, cells));
            }
        }
    }
}

/// Appends figures of the durations of the spans that ended in the interval.
fn put_durations(spans: StatSpans, rows: &[&SnapshotRow], columns: &mut Vec<Column>) {
    let facts = rows.iter().map(|row| Some(row.durations()?.facts()));
    let facts: Vec<Option<NumberFacts>> = facts.collect();
    for (name, figure) in spans.live_figures() {
        let cells = facts.iter();
        let cells = cells.map(|facts| figure.cell_in(&NANOSECONDS, facts.as_ref()));
        columns.push(Column::numbers(name, cells));
    }
    if !spans.has_parts {
        return;
    }
    let shares = rows.iter().map(|row| {
        let numbers = row.is_span.then_some(&row.interval.numbers);
        let shares = parts::shares(numbers.and_then(|numbers| SpanParts::from_counted(numbers)));
        shares.collect()
    });
    let shares: Vec<Vec<TableCell>> = shares.collect();
    for (place, name) in parts::columns().enumerate() {
        let cells = shares.iter().filter_map(|row| row.get(place).cloned());
        columns.push(Column::numbers(name, cells));
    }
}

/// A cell of a key.
fn key(row: &SnapshotRow, place: usize) -> TableCell {
    let Some(keys) = &row.keys else {
        return TableCell::Text("<others>".to_owned());
    };
    let key = keys.get(place).map(StatKey::table_cell);
    key.unwrap_or_else(|| TableCell::Text(String::new()))
}

/// A name, escaped.
pub(super) fn printable(name: &str) -> String {
    escape(name).into_owned()
}

/// The width of the column of the last intervals, where so many columns are left by others: these are not cut for more than a few intervals.
pub(super) fn history_width(left: usize) -> Width {
    const MIN_INTERVALS: usize = 20;
    Width {
        natural: left.clamp(MIN_INTERVALS, HISTORY),
        least: MIN_TEXT,
    }
}

/// The heading of so many last intervals.
pub(super) fn history_name(interval: Duration, columns: usize) -> String {
    let time = interval.as_secs_f64() * 1e9 * columns as f64;
    format!("Last {}", duration(time))
}

/// The last intervals of a row, the newest at the end of so many columns.
pub(super) fn history(row: &SnapshotRow, columns: usize) -> String {
    let from = row.history.len().saturating_sub(columns);
    let known = row.history.get(from..).unwrap_or_default();
    let values: Vec<u64> = known.iter().map(|count| u64::from(*count)).collect();
    format!(
        "{}{}",
        " ".repeat(columns - known.len()),
        sparkline(&values)
    )
}
