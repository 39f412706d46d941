//! Tables and folded lines, at most 80 columns wide where what is in them allows.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::theme::Theme;

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnSide {
    Left,
    Right,
}

/// Appends rows, the heading as the first of them, two blanks between columns. Of the first column, a cell that would make lines too long has a
/// line of its own.
pub(crate) fn put_columns(
    rows: &[Vec<String>],
    sides: &[ColumnSide],
    theme: Theme,
    out: &mut String,
) {
    let width = |column: usize| {
        let lengths = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.width());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
    let room = WIDTH.saturating_sub(others).max(8);
    let first = widths.first().map_or(0, |&width| width.min(room));
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for ((at, cell), side) in row.iter().enumerate().zip(sides) {
            let width = if at == 0 { first } else { widths[at] };
            if at > 0 {
                line.push_str("  ");
            } else if cell.width() > first {
                line.push_str(cell);
                line.push('\n');
                line.push_str(&" ".repeat(first));
                continue;
            }
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            match side {
                ColumnSide::Left => line.extend([cell.as_str(), &blanks]),
                ColumnSide::Right => line.extend([blanks.as_str(), cell]),
            }
        }
        if number == 0 {
            theme.put_heading(line.trim_end(), out);
        } else {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
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

    #[test]
    fn long_names_have_a_line_of_their_own() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let long = "x".repeat(90);
        let rows = [row(["Name", "Count"]), row([&long, "12"]), row(["b", "3"])];
        let mut out = String::new();
        put_columns(
            &rows,
            &[ColumnSide::Left, ColumnSide::Right],
            Theme::default(),
            &mut out,
        );
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
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut out = String::new();
        let rows = [row(["名前", "数"]), row(["abcde", "12"])];
        let sides = [ColumnSide::Left, ColumnSide::Right];
        put_columns(&rows, &sides, Theme::default(), &mut out);
        assert_eq!(out, "名前   数\nabcde  12\n");
        assert_eq!(fold("", "漢字 漢字 漢字", " ", 10), "漢字 漢字\n 漢字\n");
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
    }
}
