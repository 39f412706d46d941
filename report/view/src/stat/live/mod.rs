//! A table of what was counted, which is shown again after each interval: on a terminal as much of it as has room.

mod column;
mod layout;
mod order;

use std::collections::BTreeSet;

use usdtrec_format::counted;
use usdtrec_trace::session::event_name::short_name;

pub use self::column::HISTORY;
use self::column::{ColumnChoice, printable};
use self::layout::Layout;
pub use self::order::RowOrder;
use super::StatSpans;
use super::fates::{FateCount, SpanFates};
use super::key::address_hint;
use super::numbers::StatArgument;
use super::snapshot::{SnapshotRow, StatSnapshot};
use crate::cut_apart::cut;
use crate::theme::Theme;

/// Which rows are shown, in which order.
#[derive(Clone, Debug, Default)]
pub struct RowChoice {
    /// Their order.
    pub order: RowOrder,
    /// A text that a key or the probe's name must contain, in large or small letters; empty for all rows.
    pub filter: String,
}

/// The room for a table on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRoom {
    /// Maximum width of lines, columns.
    pub columns: usize,
    /// Maximum number of lines.
    pub lines: usize,
}

/// Shows tables of what was counted.
#[derive(Debug)]
pub struct LiveTable {
    theme: Theme,
    /// Names of the keys; empty if probes are not divided into groups.
    keys: Vec<String>,
    /// The arguments whose numbers are shown.
    measured: Vec<StatArgument>,
    /// How spans are shown; `None` if there are none.
    spans: Option<StatSpans>,
}

impl LiveTable {
    /// A table; `colours` is whether it is in colours.
    #[must_use]
    pub fn new(colours: bool, keys: Vec<String>, measured: Vec<StatArgument>) -> Self {
        Self {
            theme: Theme::new(colours),
            keys,
            measured,
            spans: None,
        }
    }

    /// The same with spans, if there are any.
    #[must_use]
    pub const fn with_spans(mut self, spans: Option<StatSpans>) -> Self {
        self.spans = spans;
        self
    }

    /// The order that follows another one.
    #[must_use]
    pub fn next_order(&self, order: RowOrder) -> RowOrder {
        order.next(self.spans.is_some())
    }

    /// The table: on a terminal the rows that were hit since the start, and their last intervals, as far as there is room; without a room the
    /// rows that were hit in the interval.
    #[must_use]
    pub fn show(
        &self,
        snapshot: &StatSnapshot,
        choice: &RowChoice,
        room: Option<TableRoom>,
    ) -> String {
        let mut rows = self.rows(snapshot, room.is_some());
        let filter = choice.filter.to_lowercase();
        rows.retain(|row| filter.is_empty() || contains(row, &filter));
        choice.order.sort(&mut rows);
        // Besides the rows there are two lines, or three.
        let lines = room.map_or(usize::MAX, |room| room.lines.saturating_sub(2));
        let hidden = match rows.len() > lines {
            true => rows.len() - lines.saturating_sub(1),
            false => 0,
        };
        rows.truncate(rows.len() - hidden);
        let of_one_probe = (room.is_some() && !self.keys.is_empty())
            .then(|| only_event(&snapshot.rows))
            .flatten();
        let mut out = String::new();
        let remark = self.remark(snapshot, of_one_probe);
        let remark = room.map_or(remark.clone(), |room| cut(&remark, room.columns));
        self.theme.put_totals(&remark, snapshot.lost(), &mut out);
        let choice = ColumnChoice {
            keys: &self.keys,
            measured: &self.measured,
            spans: self.spans,
        };
        let columns = choice.columns(&rows, snapshot, of_one_probe.is_none());
        let layout = Layout::new(columns, room.map(|room| room.columns));
        self.theme
            .put_heading(&layout.heading(snapshot.every), &mut out);
        for (at, row) in rows.iter().enumerate() {
            out.push_str(&layout.row(at));
            let history = layout.history(row);
            if !history.trim().is_empty() {
                out.push_str(&self.theme.bar(&history));
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        if hidden > 0 {
            out.push_str(&format!("… {hidden} more\n"));
        }
        out
    }

    /// A line below the table.
    #[must_use]
    pub fn foot(&self, text: &str, room: TableRoom) -> String {
        let mut out = String::new();
        self.theme.put_remark(&cut(text, room.columns), &mut out);
        out
    }

    /// The rows that can be shown.
    fn rows<'s>(&self, snapshot: &'s StatSnapshot, on_terminal: bool) -> Vec<&'s SnapshotRow> {
        let rows = snapshot.rows.iter();
        let rows = rows.filter(|row| {
            let sum = if on_terminal {
                &row.total
            } else {
                &row.interval
            };
            self.keys.is_empty() || sum.count > 0 || sum.lost > 0
        });
        rows.collect()
    }

    fn remark(&self, snapshot: &StatSnapshot, of_one_probe: Option<&str>) -> String {
        let shows_spans = self.spans.is_some() && snapshot.has(true);
        let shows_events = !shows_spans || snapshot.has(false);
        let both = |count: fn(&StatSnapshot, bool) -> u64| {
            let spans = shows_spans.then(|| counted(count(snapshot, true), "span"));
            let events = shows_events.then(|| format!("{} events", count(snapshot, false)));
            Vec::from_iter(spans.into_iter().chain(events)).join(", ")
        };
        let in_all = match shows_spans {
            true => both(StatSnapshot::total_of),
            false => snapshot.total_of(false).to_string(),
        };
        let mut remark = format!(
            "# {:.1} s: {} in {:.2} s, {in_all} in all, {} lost",
            snapshot.elapsed.as_secs_f64(),
            both(StatSnapshot::count_of),
            snapshot.interval.as_secs_f64(),
            snapshot.lost(),
        );
        for FateCount { name, count } in fates(snapshot) {
            remark.push_str(&format!("; {count} {name}"));
        }
        if let Some(event) = of_one_probe {
            remark.push_str(&format!("; {}", printable(short_name(event))));
        }
        let all: BTreeSet<&str> = snapshot.rows.iter().map(|row| &*row.event).collect();
        let hit = snapshot.rows.iter().filter(|row| row.total.count > 0);
        let hit: BTreeSet<&str> = hit.map(|row| &*row.event).collect();
        match all.len() - hit.len() {
            _ if self.keys.is_empty() => {}
            0 => {}
            1 => remark.push_str("; 1 probe without events"),
            silent => remark.push_str(&format!("; {silent} probes without events")),
        }
        let groups = snapshot.rows.iter().filter_map(|row| row.keys.as_deref());
        remark.push_str(&address_hint(&self.keys, groups));
        remark
    }
}

/// What became of begins and ends in the interval, without what did not happen.
fn fates(snapshot: &StatSnapshot) -> impl Iterator<Item = FateCount> {
    let rows = snapshot.rows.iter();
    let fates: Vec<SpanFates> = rows.filter_map(|row| row.interval.fates).collect();
    let named = SpanFates::default().parts().into_iter().enumerate();
    let sums = named.map(move |(place, fate)| {
        let counts = fates.iter().map(|fates| fates.parts()[place].count);
        FateCount {
            count: counts.sum(),
            ..fate
        }
    });
    sums.filter(|fate| fate.count > 0)
}

/// Whether a key, or the name of the probe, contains a text in small letters.
fn contains(row: &SnapshotRow, filter: &str) -> bool {
    let is_in = |text: &str| text.to_lowercase().contains(filter);
    let mut keys = row.keys.iter().flatten();
    is_in(short_name(&row.event)) || keys.any(|key| is_in(&key.table_cell().shown()))
}

/// The event that all rows are of.
fn only_event(rows: &[SnapshotRow]) -> Option<&str> {
    let first = rows.first()?;
    let is_only = rows.iter().all(|row| row.event == first.event);
    is_only.then_some(&*first.event)
}

#[cfg(test)]
mod tests;
