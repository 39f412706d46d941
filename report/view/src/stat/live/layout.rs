//! Columns with their widths.

use std::time::Duration;

use super::super::snapshot::SnapshotRow;
use super::column::{self, Column};
use crate::columns::{left, right};
use crate::cut_apart::{cut, cut_apart};
use crate::fit::{GAP, fit};
use crate::table::TableCell;

/// The columns of a table, and the width of each.
pub(super) struct Layout {
    columns: Vec<Column>,
    /// The cells of each column as they are shown: different ones look different.
    cells: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// Maximum width of a line.
    room: usize,
    /// Width of the column of the last intervals; `None` if there is none.
    history: Option<usize>,
}

impl Layout {
    /// Columns in lines of at most so many columns of a terminal, the last intervals after them if these have room; `None` for lines of any length
    /// without these.
    pub(super) fn new(columns: Vec<Column>, room: Option<usize>) -> Self {
        let mut all: Vec<_> = columns.iter().map(Column::width).collect();
        let most = room.unwrap_or(usize::MAX);
        let gaps = GAP * columns.len();
        let natural: usize = all.iter().map(|width| width.natural).sum();
        all.push(column::history_width(most.saturating_sub(natural + gaps)));
        let least: usize = all.iter().map(|width| width.least).sum();
        let has_history = room.is_some() && least + gaps <= most;
        if !has_history {
            all.pop();
        }
        let mut widths = fit(&all, most);
        let history = has_history.then(|| widths.pop()).flatten();
        let cells = columns.iter().zip(&widths).map(|(column, &width)| {
            let cells: Vec<_> = column.cells.iter().map(TableCell::shown).collect();
            let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
            cut_apart(&cells, width)
        });
        let cells = cells.collect();
        Self {
            columns,
            cells,
            widths,
            room: most,
            history,
        }
    }

    /// The heading. Intervals have this length.
    pub(super) fn heading(&self, interval: Duration) -> String {
        let cells = self.columns.iter().zip(&self.widths);
        let cells = cells.map(|(column, &width)| Shown {
            text: cut(&column.name, width),
            is_number: column.is_number(),
        });
        let heading = self.line(cells);
        let last = self.history.map_or_else(String::new, |columns| {
            let name = column::history_name(interval, columns);
            left("", GAP) + &cut(&name, columns)
        });
        (heading + &last).trim_end().to_owned()
    }

    /// The cells of a row.
    pub(super) fn row(&self, at: usize) -> String {
        let columns = self.columns.iter().zip(&self.cells);
        self.line(columns.filter_map(|(column, cells)| {
            Some(Shown {
                text: cells.get(at)?.clone(),
                is_number: column.cells.get(at)?.is_number(),
            })
        }))
    }

    /// What follows the cells of a row: its last intervals.
    pub(super) fn history(&self, row: &SnapshotRow) -> String {
        self.history.map_or_else(String::new, |columns| {
            left("", GAP) + &column::history(row, columns)
        })
    }

    fn line(&self, cells: impl Iterator<Item = Shown>) -> String {
        let cells = cells
            .zip(&self.widths)
            .map(|(cell, &width)| match cell.is_number {
                true => right(&cell.text, width),
                false => left(&cell.text, width),
            });
        let cells: Vec<String> = cells.collect();
        cut(&cells.join(&left("", GAP)), self.room)
    }
}

/// A cell as it is shown.
struct Shown {
    text: String,
    is_number: bool,
}
