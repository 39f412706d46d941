//! A table of what was counted, which is shown again after each interval: on a terminal as much of it as has room.

mod column;
mod layout;
mod order;

use std::collections::BTreeSet;

use usdtrec_trace::session::event_name::short_name;

pub use self::column::HISTORY;
use self::column::{ColumnChoice, printable};
use self::layout::Layout;
pub use self::order::RowOrder;
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
}

impl LiveTable {
    /// A table; `colours` is whether it is in colours.
    #[must_use]
    pub fn new(colours: bool, keys: Vec<String>, measured: Vec<StatArgument>) -> Self {
        Self {
            theme: Theme::new(colours),
            keys,
            measured,
        }
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
        let mut remark = format!(
            "# {:.1} s: {} events in {:.2} s, {} in all, {} lost",
            snapshot.elapsed.as_secs_f64(),
            snapshot.count(),
            snapshot.interval.as_secs_f64(),
            snapshot.total(),
            snapshot.lost(),
        );
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
        remark
    }
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
