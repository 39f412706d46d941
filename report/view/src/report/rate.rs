//! Rates as text, JSON and CSV; `report/FIELDS.md` describes members and columns.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use usdtrec_analysis::rate::Rates;
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::event_name::short_name;

use crate::bars::sparkline;
use crate::cells::{self, cells};
use crate::columns::{folded_from, put_table};
use crate::head;
use crate::numbers::{duration, rate};
use crate::table::{Table, TableCell};
use crate::text::quoted::Csv;
use crate::theme::Theme;

/// Columns of a sparkline, in lines of 80 columns.
const COLUMNS: usize = 40;

/// Rates as a table with a line for each series.
pub(crate) fn text(rates: &Rates, theme: Theme) -> String {
    let mut out = String::new();
    head::put(&rates.origin, &[], theme, &mut out);
    let interval = rates.timeline.interval;
    let (last, of_whole) = match last_part(rates) {
        Some(last) => (
            format!(" (the last one: {})", duration(last as f64)),
            "# least and most are of whole intervals\n",
        ),
        None => (String::new(), ""),
    };
    let _ = writeln!(
        out,
        "# {} intervals of {}{last}, least, mean and most a second\n{of_whole}",
        rates.timeline.intervals,
        duration(interval as f64),
    );
    let mut table = Table::new(["Series", "Events", "least", "mean", "most", "over time"]);
    let columns = theme.room(COLUMNS);
    for series in &rates.series {
        let event = series.event.iter();
        let event = event.map(|event| escape(short_name(event)).into_owned());
        let mut name: Vec<String> = event.collect();
        let cells = cells(&rates.keys, &series.values, true);
        name.extend(cells.iter().map(|cell| cell.text.trim().to_owned()));
        table.rows.push(row(
            name.join(" "),
            interval,
            Counted::of(&series.counts, &series.recorded),
            columns,
        ));
    }
    if let Some(others) = &rates.others {
        let name = "all other series".to_owned();
        table.rows.push(row(
            name,
            interval,
            Counted::of(&others.counts, &others.recorded),
            columns,
        ));
    }
    put_table(&table, theme, &mut out);
    if let Some(bound) = rates.others.as_ref().and_then(|others| others.doubtful) {
        let warning = format!(
            "there were too many series to keep all apart: one that is not shown may have up to {bound} events"
        );
        folded_from("WARNING: ", &warning, "  ", theme, &mut out);
    }
    out
}

/// An object for each series, and for those that are not counted one by one.
pub(crate) fn json(rates: &Rates) -> Json {
    let by_event = rates.series.iter().any(|series| series.event.is_some());
    let names = || rates.keys.iter().map(Key::name);
    let add_counts = |counts: &[u64], recorded: &[u64], row: &mut Json| {
        row["from_ns"] = rates.timeline.from.into();
        row["interval_ns"] = rates.timeline.interval.into();
        row["counts"] = counts.into();
        row["recorded_ns"] = recorded.into();
    };
    let series = rates.series.iter().map(|series| {
        let mut row = cells::json(names(), cells(&rates.keys, &series.values, false));
        if let Some(event) = &series.event {
            row["event"] = json!(event);
        }
        add_counts(&series.counts, &series.recorded, &mut row);
        row
    });
    let others = rates.others.iter().map(|others| {
        let event = by_event.then_some("event");
        let mut row = cells::json_without_values(event.into_iter().chain(names()));
        row["others"] = true.into();
        row["doubtful"] = others.doubtful.into();
        add_counts(&others.counts, &others.recorded, &mut row);
        row
    });
    series.chain(others).collect()
}

/// A header line, and a line for each interval of each series.
pub(crate) fn csv(csv: Csv, rates: &Rates) -> String {
    let by_event = rates.series.iter().any(|series| series.event.is_some());
    let mut columns: Vec<&str> = if by_event { vec!["event"] } else { Vec::new() };
    columns.extend(rates.keys.iter().map(Key::name));
    columns.extend(["time_ns", "count", "others", "doubtful", "recorded_ns"]);
    let columns: Vec<_> = columns.into_iter().map(|name| csv.field(name)).collect();
    let mut out = columns.join(",") + "\n";
    for series in &rates.series {
        let cells = cells(&rates.keys, &series.values, false);
        let mut start: Vec<String> = series
            .event
            .iter()
            .map(|event| csv.field(event).into_owned())
            .collect();
        start.extend(cells.iter().map(|cell| cell.csv(csv).into_owned()));
        let start: String = start.into_iter().map(|field| field + ",").collect();
        put_csv(
            rates,
            &start,
            Counted::of(&series.counts, &series.recorded),
            ",false,",
            &mut out,
        );
    }
    if let Some(others) = &rates.others {
        let start = ",".repeat(rates.keys.len() + usize::from(by_event));
        let doubtful = others.doubtful.map(|bound| bound.to_string());
        let end = format!(",true,{}", doubtful.unwrap_or_default());
        put_csv(
            rates,
            &start,
            Counted::of(&others.counts, &others.recorded),
            &end,
            &mut out,
        );
    }
    out
}

fn put_csv(rates: &Rates, start: &str, counted: Counted<'_>, end: &str, out: &mut String) {
    for (at, (count, recorded)) in counted.intervals().enumerate() {
        let time = rates.timeline.begin(at as u64);
        let _ = writeln!(out, "{start}{time},{count}{end},{recorded}");
    }
}

/// Counts in intervals, and for how long each of them was recorded, ns.
#[derive(Clone, Copy)]
struct Counted<'a> {
    counts: &'a [u64],
    recorded: &'a [u64],
}

impl<'a> Counted<'a> {
    const fn of(counts: &'a [u64], recorded: &'a [u64]) -> Self {
        Self { counts, recorded }
    }

    fn intervals(self) -> impl Iterator<Item = (u64, u64)> + Clone {
        self.counts
            .iter()
            .copied()
            .zip(self.recorded.iter().copied())
    }

    /// The intervals whose rates are the least and the greatest: of those that were recorded from begin to end, or if none was, of all.
    fn extremes(self, interval: u64) -> Option<[(u64, u64); 2]> {
        let whole = self.intervals().filter(|(_, time)| *time >= interval);
        let parts = self.intervals().filter(|(_, time)| *time > 0);
        let by_rate = |a: &(u64, u64), b: &(u64, u64)| {
            let [a, b] =
                [(a.0, b.1), (b.0, a.1)].map(|(count, time)| u128::from(count) * u128::from(time));
            a.cmp(&b)
        };
        let least = whole
            .clone()
            .min_by(by_rate)
            .or_else(|| parts.clone().min_by(by_rate));
        let most = whole.max_by(by_rate).or_else(|| parts.max_by(by_rate));
        Some([least?, most?])
    }
}

/// How much was recorded of the last interval, if the recording ended in it, ns.
fn last_part(rates: &Rates) -> Option<u64> {
    let of_series = rates.series.iter().map(|series| &series.recorded);
    let last = of_series.filter_map(|recorded| recorded.last()).max();
    let is_part = |last: &u64| *last < rates.timeline.interval && rates.timeline.intervals > 1;
    last.copied().filter(is_part)
}

/// A line of the table, with a sparkline of so many columns.
fn row(name: String, interval: u64, counted: Counted<'_>, columns: usize) -> Vec<TableCell> {
    let per_second = |(count, ns)| TableCell::number(rate(count, ns), count);
    let sum: u64 = counted.counts.iter().sum();
    let time = counted.recorded.iter().sum();
    let [least, most] = counted.extremes(interval).unwrap_or_default();
    vec![
        TableCell::Value(name),
        TableCell::count(sum),
        per_second(least),
        per_second((sum, time)),
        per_second(most),
        TableCell::Text(sparkline(&shrunk(counted.counts, columns))),
    ]
}

/// The counts in at most so many columns, each the sum of as many neighbours.
fn shrunk(counts: &[u64], columns: usize) -> Vec<u64> {
    let together = counts.len().div_ceil(columns).max(1);
    counts
        .chunks(together)
        .map(|part| part.iter().sum())
        .collect()
}
