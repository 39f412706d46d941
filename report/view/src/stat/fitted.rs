//! Tables of rows with many figures: where they are wider than lines, figures are in several tables.

use std::borrow::Cow;

use usdtrec_format::escape::escape;

use crate::columns::{left, put_table};
use crate::table::{Table, TableCell};
use crate::text::width::width;
use crate::theme::Theme;

/// Columns that names and keys have beside figures at least, unless they are shorter.
const MIN_NAMES_WIDTH: usize = 10;

/// Width up to which names and keys stand below each other, columns.
const MAX_ALIGNED_WIDTH: usize = 32;

/// Columns that stay together.
#[derive(Clone)]
pub(super) struct Block {
    pub(super) columns: Vec<String>,
    /// The cells of each row.
    pub(super) rows: Vec<Vec<TableCell>>,
    /// What comes after all that is in the same table.
    pub(super) last: Option<Box<Block>>,
}

/// A table.
pub(super) struct FittedTable {
    /// Names and keys, which are in each table.
    pub(super) names: Block,
    /// Figures.
    pub(super) blocks: Vec<Block>,
}

impl Block {
    pub(super) fn new<N: AsRef<str>>(
        columns: impl IntoIterator<Item = N>,
        rows: impl Iterator<Item = Vec<TableCell>>,
    ) -> Self {
        let columns = columns.into_iter();
        Self {
            columns: columns.map(|name| name.as_ref().to_owned()).collect(),
            rows: rows.collect(),
            last: None,
        }
    }

    /// Its width, with the blanks before each column, and with what comes last.
    fn width(&self) -> usize {
        let own: usize = self.widths().sum();
        own + self.last.as_ref().map_or(0, |last| last.width())
    }

    /// The width of each column, with the blanks before it.
    fn widths(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().enumerate().map(|(place, name)| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let cells = cells.map(|cell| width(&cell.shown()));
            cells.chain([width(&escape(name))]).max().unwrap_or(0) + 2
        })
    }

    /// It as blocks of at most this width, or of one column.
    fn divided(self, room: usize) -> Vec<Self> {
        let mut blocks = Vec::new();
        let mut rest = Some(self);
        while let Some(mut block) = rest {
            rest = block.split_off(room);
            blocks.push(block);
        }
        blocks
    }

    /// Removes the columns after those that fit, and what comes last; `None` if all fit. One column stays.
    fn split_off(&mut self, room: usize) -> Option<Self> {
        if self.width() <= room {
            return None;
        }
        let mut used = 0;
        let fitting = self.widths().take_while(|width| {
            used += width;
            used <= room
        });
        let fitting = fitting.count().max(1);
        let last = self.last.take();
        if fitting >= self.columns.len() {
            return last.map(|last| *last);
        }
        let rows = self.rows.iter_mut();
        let rows = rows.map(|row| row.split_off(fitting.min(row.len())));
        Some(Self {
            rows: rows.collect(),
            columns: self.columns.split_off(fitting),
            last,
        })
    }

    /// Its names and keys as one column, in which those that are short stand below each other.
    fn joined(&self) -> Self {
        let width_at = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let widest = cells.map(|cell| width(&cell.shown())).max().unwrap_or(0);
            let heading = width(&escape(&self.columns[place]));
            Some(widest.max(heading)).filter(|width| *width <= MAX_ALIGNED_WIDTH)
        };
        let widths: Vec<Option<usize>> = (0..self.columns.len()).map(width_at).collect();
        let join = |cells: &mut dyn Iterator<Item = Cow<'_, str>>| {
            let cells = cells.zip(&widths);
            let cells = cells.map(|(cell, width)| left(&cell, width.unwrap_or(0)));
            let joined: Vec<String> = cells.collect();
            joined.join("  ").trim_end().to_owned()
        };
        let rows = self.rows.iter().map(|cells| {
            let joined = join(&mut cells.iter().map(TableCell::shown));
            vec![TableCell::Code(joined)]
        });
        Self {
            columns: vec![join(&mut self.columns.iter().map(|name| escape(name)))],
            rows: rows.collect(),
            last: None,
        }
    }
}

impl FittedTable {
    /// Appends it: as one table if it fits, else with the names in one column, which have lines of their own where they are long, and as many figures in
    /// each table as fit. A block is in several tables only if it is wider than one.
    pub(super) fn put(self, theme: Theme, out: &mut String) {
        let widths = self.blocks.iter().map(Block::width);
        let width = theme.columns();
        if self.names.width() + widths.sum::<usize>() <= width + 2 {
            return put_table(&table(self.names, self.blocks), theme, out);
        }
        let names = self.names.joined();
        let room = width.saturating_sub(names.width().min(MIN_NAMES_WIDTH));
        let blocks = self.blocks.into_iter();
        let blocks = blocks.flat_map(|block| block.divided(room));
        let blocks = blocks.map(|block| {
            let width = block.width();
            (block, width)
        });
        let mut rest = blocks.peekable();
        let mut is_first = true;
        while let Some((block, mut used)) = rest.next() {
            let mut these = vec![block];
            while let Some((block, width)) = rest.next_if(|(_, width)| used + width <= room) {
                used += width;
                these.push(block);
            }
            if !std::mem::replace(&mut is_first, false) {
                out.push('\n');
            }
            put_table(&table(names.clone(), these), theme, out);
        }
    }
}

/// A table of these columns.
fn table(names: Block, mut blocks: Vec<Block>) -> Table {
    let last = blocks.iter_mut().filter_map(|block| block.last.take());
    let last: Vec<Block> = last.map(|last| *last).collect();
    let columns = [&names].into_iter().chain(&blocks).chain(&last);
    let mut table = Table::new(columns.flat_map(|block| &block.columns));
    table.rows = names.rows;
    let further = table.columns.len() - names.columns.len();
    for row in &mut table.rows {
        row.reserve_exact(further);
    }
    for block in blocks.into_iter().chain(last) {
        for (row, cells) in table.rows.iter_mut().zip(block.rows) {
            row.extend(cells);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::theme::WIDTH;

    fn block(columns: &[&str], width: usize) -> Block {
        Block {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: vec![
                columns
                    .iter()
                    .map(|_| TableCell::unsorted("9".repeat(width)))
                    .collect(),
            ],
            last: None,
        }
    }

    fn shown(key: &str, figures: usize) -> String {
        let names = Block {
            columns: vec!["Probe".to_owned(), "url".to_owned()],
            rows: vec![vec![
                TableCell::Code("app:req".to_owned()),
                TableCell::Code(key.to_owned()),
            ]],
            last: None,
        };
        let mut counts = block(&["Events", "/s"], 7);
        counts.last = Some(Box::new(block(&["Lost"], 1)));
        let blocks = (0..figures).map(|_| block(&["sum", "mean", "min", "max"], 9));
        let table = FittedTable {
            names,
            blocks: [counts].into_iter().chain(blocks).collect(),
        };
        let mut out = String::new();
        table.put(Theme::new(false), &mut out);
        out
    }

    /// What fits stays one table; else no line is longer than 80 columns but a name that is, and no figure is missing.
    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let one = shown("/a", 1);
        assert_eq!(one.lines().count(), 2, "{one}");
        for (key, figures) in [("/a", 3), (&*"/long".repeat(9), 1), (&*"x".repeat(200), 2)] {
            let text = shown(key, figures);
            let long = text.lines().filter(|line| line.width() > WIDTH);
            for line in long {
                assert!(line.starts_with("app:req  x"), "{text}");
            }
            assert_eq!(text.matches("999999999").count(), 4 * figures, "{text}");
            assert_eq!(text.matches("Lost").count(), 1, "{text}");
            assert!(text.contains(key), "{text}");
        }
    }

    /// Figures that are wider than a line together are in several tables, each with the names.
    #[test]
    fn wide_blocks_are_divided() {
        let columns = ["sum", "mean", "min", "p50", "p90", "p99", "max"];
        let name = vec![TableCell::Code("app:req".to_owned())];
        let names = Block::new(["Probe"], [name].into_iter());
        let mut counts = block(&["Events", "/s"], 9);
        counts.last = Some(Box::new(block(&["Lost"], 60)));
        let table = FittedTable {
            names,
            blocks: vec![counts, block(&columns, 20)],
        };
        let mut out = String::new();
        table.put(Theme::new(false), &mut out);
        assert!(out.lines().all(|line| line.width() <= WIDTH), "{out}");
        let words = out.split_whitespace();
        let headings = words.filter(|word| !word.starts_with(['9', 'a']));
        let headings: Vec<&str> = headings.collect();
        let right = "Probe Events /s Probe Lost Probe sum mean min Probe p50 p90 p99 Probe max";
        assert_eq!(headings.join(" "), right, "{out}");
        assert_eq!(out.matches("app:req").count(), 5, "{out}");
        assert_eq!(out.matches(&"9".repeat(20)).count(), 3 + 7, "{out}");
    }

    /// A column that is wider than a line stays whole.
    #[test]
    fn wide_columns_are_blocks() {
        let widths = |block: Block| {
            let blocks = block.divided(10);
            Vec::from_iter(blocks.iter().map(Block::width))
        };
        assert_eq!(widths(block(&["a", "b"], 20)), [22, 22]);
        assert_eq!(widths(block(&["a", "b", "c"], 3)), [10, 5]);
        assert_eq!(widths(block(&["a", "b"], 3)), [10]);
    }
}
