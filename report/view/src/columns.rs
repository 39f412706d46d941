//! Tables and folded lines, at most 80 columns wide where what is in them allows.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use usdtrec_format::escape::escape;

use crate::table::{Table, TableCell};
use crate::theme::Theme;

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// Appends a table, two blanks between columns. Of the first column, a cell that would make lines too long has a line of its own.
pub(crate) fn put_table(table: &Table, theme: Theme, out: &mut String) {
    let heading = table.columns.iter().map(|name| escape(name));
    let mut lines: Vec<Vec<Cow<'_, str>>> = vec![heading.collect()];
    let rows = table.rows.iter();
    lines.extend(rows.map(|row| row.iter().map(TableCell::shown).collect()));
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
    if let Some(first) = widths.first_mut() {
        *first = (*first).min(WIDTH.saturating_sub(others).max(8));
    }
    for (number, cells) in lines.iter().enumerate() {
        // The heading is aligned as the first row.
        let row = table.rows.get(number.saturating_sub(1));
        let is_number = |at| {
            row.and_then(|row| row.get(at))
                .is_some_and(TableCell::is_number)
        };
        let mut line = String::new();
        for (at, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            if at > 0 {
                line.push_str("  ");
            } else if cell.width() > width {
                line.push_str(cell);
                line.push('\n');
                line.push_str(&" ".repeat(width));
                continue;
            }
            line.push_str(&match is_number(at) {
                true => right(cell, width),
                false => left(cell, width),
            });
        }
        match number {
            0 => theme.put_heading(line.trim_end(), out),
            _ => out.extend([line.trim_end(), "\n"]),
        }
    }
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
    " ".repeat(columns.saturating_sub(text.width()))
}

/// Appends text as lines of at most [`WIDTH`] columns, `indent` before each.
pub(crate) fn folded(text: &str, indent: &str, out: &mut String) {
    folded_from(indent, text, indent, out);
}

/// As [`folded`], the first line beginning with `start`.
pub(crate) fn folded_from(start: &str, text: &str, indent: &str, out: &mut String) {
    out.push_str(&fold(start, text, indent, WIDTH));
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
        // A line that goes on does not start with blanks between columns.
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

/// The beginning of a text that fits in so many columns, with `…` if it is not all.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = '…'.width().unwrap_or(0);
    let fitting = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used <= columns
    });
    fitting.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: [&str; 2], rows: &[(&str, u64)]) -> String {
        let mut table = Table::new(columns);
        table.rows.extend(rows.iter().map(|(name, count)| {
            vec![TableCell::Code((*name).to_owned()), TableCell::count(count)]
        }));
        let mut out = String::new();
        put_table(&table, Theme::default(), &mut out);
        out
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

    #[test]
    fn lines_are_folded_at_blanks() {
        let mut out = String::new();
        folded(&"word ".repeat(40), "  ", &mut out);
        assert!(
            out.lines()
                .all(|line| line.starts_with("  ") && line.len() <= WIDTH)
        );
        assert_eq!(out.split_whitespace().count(), 40);
        let mut out = String::new();
        folded_from("a: ", &"x".repeat(100), "   ", &mut out);
        assert_eq!(out, format!("a: {}\n", "x".repeat(100)));
    }

    #[test]
    fn characters_of_two_columns_count_twice() {
        let out = shown(["名前", "数"], &[("abcde", 12)]);
        assert_eq!(out, "名前   数\nabcde  12\n");
        assert_eq!(fold("", "漢字 漢字 漢字", " ", 10), "漢字 漢字\n 漢字\n");
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
    }

    #[test]
    fn long_texts_end_early() {
        assert_eq!(shortened("größe", 5), "größe");
        assert_eq!(shortened("größer", 5), "größe…");
    }
}
