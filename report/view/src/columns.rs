//! Tables and folded lines, at most as wide as the place where they are read, where what is in them allows.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_format::escape::escape;

use crate::cut_apart::cut_apart;
use crate::fit::{GAP, Width, fit};
use crate::table::{Table, TableCell};
use crate::text::width::width;
use crate::theme::Theme;

/// The least width to which words and values are cut in a column after the first.
const MIN_CUT_WIDTH: usize = 24;
/// The least room of the first column.
const MIN_FIRST_WIDTH: usize = 8;

/// Appends a table, two blanks between columns. If lines would be too long, words are cut, and values, if it is known how wide the place of the table is; of
/// the first column, a cell without room has a line of its own.
pub(crate) fn put_table(table: &Table, theme: Theme, out: &mut String) {
    let columns = table.columns.iter().enumerate();
    let columns = columns.map(|(at, _)| Shown::new(table, at, theme));
    let mut columns: Vec<Shown<'_>> = columns.collect();
    let widths = widths(&columns, theme.columns());
    for (at, (column, &width)) in columns.iter_mut().zip(&widths).enumerate() {
        // The first column has room in lines of its own.
        let most = if at == 0 { theme.columns() } else { width };
        column.cut(most);
    }
    let mut line = String::new();
    for number in 0..=table.rows.len() {
        line.clear();
        put_line(&columns, &widths, number, &mut line);
        match number {
            0 => theme.put_heading(line.trim_end(), out),
            _ => out.extend([line.trim_end(), "\n"]),
        }
        let below = number.checked_sub(1).and_then(|row| table.below.get(&row));
        if let Some(list) = below {
            put_list(list, theme, out);
        }
    }
}

/// Appends the first members of a list that fit into a line; the first one in any case.
fn put_list(list: &[String], theme: Theme, out: &mut String) {
    let mut line = String::from(" ");
    for (at, member) in list.iter().enumerate() {
        let more = format!("{} {member}", if at > 0 { "," } else { "" });
        if at > 0 && line.width() + more.width() > theme.columns() {
            break;
        }
        line.push_str(&more);
    }
    out.extend([&line, "\n"]);
}

/// Appends a line of a table: the heading, and after it the rows.
fn put_line(columns: &[Shown<'_>], widths: &[usize], number: usize, line: &mut String) {
    for (at, (column, &width)) in columns.iter().zip(widths).enumerate() {
        let Some(cell) = column.cells.get(number) else {
            continue;
        };
        let used = column.widths.get(number).copied().unwrap_or(0);
        if at > 0 {
            put_blanks(GAP, line);
        } else if used > width {
            line.push_str(cell);
            line.push('\n');
            put_blanks(width, line);
            continue;
        }
        let blanks = width.saturating_sub(used);
        // The heading is aligned as the first row.
        let row = number.saturating_sub(1);
        if column.are_numbers.get(row) == Some(&true) {
            put_blanks(blanks, line);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            put_blanks(blanks, line);
        }
    }
}

fn put_blanks(number: usize, line: &mut String) {
    line.extend(std::iter::repeat_n(' ', number));
}

/// A column as it is shown.
struct Shown<'t> {
    /// The heading, and the cells of the rows.
    cells: Vec<Cow<'t, str>>,
    /// How wide each of these is.
    widths: Vec<usize>,
    /// Whether the cells of the rows are numbers.
    are_numbers: Vec<bool>,
    /// Whether each of the cells may be cut.
    may_be_cut: Vec<bool>,
}

impl<'t> Shown<'t> {
    /// A column of a table.
    fn new(table: &'t Table, at: usize, theme: Theme) -> Self {
        let rows = || table.rows.iter().filter_map(|row| row.get(at));
        let heading = table.columns.get(at).map(|name| escape(name));
        let cells = heading.into_iter().chain(rows().map(TableCell::shown));
        let cells: Vec<Cow<'_, str>> = cells.collect();
        let may_be_cut = |cell: &TableCell| match cell {
            TableCell::Text(_) => true,
            // The first column has lines of its own.
            TableCell::Value(_) => at == 0 || theme.has_width(),
            TableCell::Code(_) | TableCell::Number { .. } => false,
        };
        Self {
            widths: cells.iter().map(|cell| width(cell)).collect(),
            cells,
            are_numbers: rows().map(TableCell::is_number).collect(),
            may_be_cut: [false].into_iter().chain(rows().map(may_be_cut)).collect(),
        }
    }

    /// How wide it is, and can be.
    fn width(&self) -> Width {
        let natural = self.widths.iter().copied().max().unwrap_or(0);
        let whole = self.widths.iter().zip(&self.may_be_cut);
        let whole = whole.filter(|(_, may_be_cut)| !**may_be_cut);
        let least = whole.map(|(width, _)| *width).max().unwrap_or(0);
        Width {
            natural,
            least: least.max(natural.min(MIN_CUT_WIDTH)),
        }
    }

    /// Cuts the cells that may be cut.
    fn cut(&mut self, columns: usize) {
        if !self.may_be_cut.contains(&true) {
            return;
        }
        let cells: Vec<&str> = self.cells.iter().map(|cell| &**cell).collect();
        let cut = cut_apart(&cells, columns);
        let cells = self.cells.iter_mut().zip(&mut self.widths);
        for ((cell, cut), may_be_cut) in cells.zip(cut).zip(&self.may_be_cut) {
            if *may_be_cut {
                *cell.1 = width(&cut);
                *cell.0 = Cow::Owned(cut);
            }
        }
    }
}

/// The widths of columns. That of the first one is less than its widest cell if this has to have a line of its own.
fn widths(columns: &[Shown<'_>], room: usize) -> Vec<usize> {
    let Some((first, others)) = columns.split_first() else {
        return Vec::new();
    };
    let others: Vec<Width> = others.iter().map(Shown::width).collect();
    let least: usize = others.iter().map(|width| GAP + width.least).sum();
    let natural = first.width().natural;
    let fits = natural + least <= room;
    let whole = Width::fixed(if fits { natural } else { MIN_FIRST_WIDTH });
    let all: Vec<Width> = [whole].into_iter().chain(others).collect();
    let mut widths = fit(&all, room);
    let others: usize = widths.iter().skip(1).map(|width| GAP + width).sum();
    if let Some(first) = widths.first_mut() {
        *first = natural.min(room.saturating_sub(others).max(MIN_FIRST_WIDTH));
    }
    widths
}

/// A text at the left of so many columns.
pub(crate) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", blanks(text, columns))
}

/// A text at the right of so many columns.
pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", blanks(text, columns))
}

fn blanks(text: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(width(text)))
}

/// Appends text as lines, `indent` before each.
pub(crate) fn folded(text: &str, indent: &str, theme: Theme, out: &mut String) {
    folded_from(indent, text, indent, theme, out);
}

/// As [`folded`], the first line beginning with `start`.
pub(crate) fn folded_from(start: &str, text: &str, indent: &str, theme: Theme, out: &mut String) {
    out.push_str(&fold(start, text, indent, theme.columns()));
}

/// Folds text at blanks into lines of at most `width` columns of a terminal, `start` before the first one and `indent` before the others. Longer words are
/// not split.
#[must_use]
pub fn fold(start: &str, text: &str, indent: &str, width: usize) -> String {
    let (mut out, mut used) = (start.to_owned(), start.width());
    let (mut is_empty, mut is_folded) = (true, false);
    for word in text.split(' ') {
        let length = word.width();
        if !is_empty && used + 1 + length > width {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(indent);
            (used, is_empty, is_folded) = (indent.width(), true, true);
        }
        // A line that continues does not start with blanks between columns.
        if is_empty && is_folded && word.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut is_empty, false) {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A text of at most so many characters as it is shown; of a longer one, the beginning and `…`.
pub fn shortened(text: &str, most: usize) -> String {
    let shown = escape(text);
    match shown.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::WIDTH;

    fn text(table: &Table, columns: Option<usize>) -> String {
        let mut out = String::new();
        let theme = Theme::default().with_columns(columns);
        put_table(table, theme, &mut out);
        out
    }

    fn shown(columns: [&str; 2], rows: &[(&str, u64)]) -> String {
        let mut table = Table::new(columns);
        table.rows.extend(rows.iter().map(|(name, count)| {
            vec![
                TableCell::Code((*name).to_owned()),
                TableCell::count(*count),
            ]
        }));
        text(&table, None)
    }

    #[test]
    fn what_programs_wrote_is_escaped() {
        let out = shown(["\x1b[1m", "n"], &[("\x1b[2J\u{202e}", 1)]);
        assert_eq!(out, "\\x1b[1m          n\n\\x1b[2J\\u{202e}  1\n");
    }

    #[test]
    fn long_names_have_a_line_of_their_own() {
        let long = "x".repeat(90);
        let out = shown(["Name", "Count"], &[(&long, 12), ("b", 3)]);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1], long);
        assert_eq!(lines[2].trim_start(), "12");
        assert!(lines.iter().all(|line| line.len() <= 90));
        assert_eq!(lines[0].len(), lines[3].len());
    }

    /// Statements as the first column, and beside a probe.
    fn statements(first: bool) -> Table {
        let mut table = Table::new(["A", "B", "Count"]);
        for end in ["open", "paid"] {
            let statement = format!("select {} where state = '{end}'", "long, ".repeat(30));
            let mut row = vec![
                TableCell::Code("postgresql:query__start".to_owned()),
                TableCell::Value(statement),
            ];
            if first {
                row.reverse();
            }
            row.push(TableCell::count(7));
            table.rows.push(row);
        }
        table
    }

    #[test]
    fn values_are_cut_to_the_width_and_differ() {
        for columns in [80, 120, 200] {
            for first in [true, false] {
                let out = text(&statements(first), Some(columns));
                let widest = out.lines().map(|line| line.width()).max();
                assert_eq!(widest, Some(columns), "{out}");
                assert!(out.contains("'open'") && out.contains("'paid'"), "{out}");
            }
        }
        let whole = text(&statements(false), Some(260));
        assert!(!whole.contains('…'), "{whole}");
        // Where nobody says how wide it is, other programs find values whole beside names.
        let piped = text(&statements(false), None);
        assert!(!piped.contains('…'), "{piped}");
        let piped = text(&statements(true), None);
        assert!(piped.lines().all(|line| line.width() <= WIDTH), "{piped}");
    }

    #[test]
    fn words_are_cut_where_that_makes_lines_fit() {
        let row = |words: &str| {
            let name = TableCell::Code("x".repeat(40));
            let words = TableCell::Text(words.to_owned());
            vec![name, words, TableCell::count(1)]
        };
        let mut table = Table::new(["Probe", "Processes", "Lost"]);
        let words = "a process with a long name (12) and 99 more";
        table.rows = vec![row(words), row("short")];
        let out = text(&table, None);
        let first = out.lines().nth(1).unwrap();
        assert_eq!(first.width(), WIDTH, "{out}");
        assert!(first.contains('…'), "{out}");
        assert!(text(&table, Some(100)).contains(words));
    }

    #[test]
    fn lines_are_folded_at_blanks() {
        let theme = Theme::default();
        let mut out = String::new();
        folded(&"word ".repeat(40), "  ", theme, &mut out);
        assert!(
            out.lines()
                .all(|line| line.starts_with("  ") && line.len() <= WIDTH)
        );
        assert_eq!(out.split_whitespace().count(), 40);
        let mut out = String::new();
        folded_from("a: ", &"x".repeat(100), "   ", theme, &mut out);
        assert_eq!(out, format!("a: {}\n", "x".repeat(100)));
        let mut out = String::new();
        let wide = theme.with_columns(Some(220));
        folded(&"word ".repeat(40), "  ", wide, &mut out);
        assert_eq!(out.lines().count(), 1);
    }

    #[test]
    fn characters_of_two_columns_count_twice() {
        let out = shown(["名前", "数"], &[("abcde", 12)]);
        assert_eq!(out, "名前   数\nabcde  12\n");
        assert_eq!(fold("", "漢字 漢字 漢字", " ", 10), "漢字 漢字\n 漢字\n");
    }

    #[test]
    fn long_texts_end_early() {
        assert_eq!(shortened("größe", 5), "größe");
        assert_eq!(shortened("größer", 5), "größe…");
    }
}
