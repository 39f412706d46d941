//! Tables and folded lines, at most 80 columns wide where what is in them allows.

use std::fmt::Write as _;

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
            .map(|cell| cell.chars().count());
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
            } else if cell.chars().count() > first {
                let _ = write!(line, "{cell}\n{:first$}", "");
                continue;
            }
            let _ = match side {
                ColumnSide::Left => write!(line, "{cell:width$}"),
                ColumnSide::Right => write!(line, "{cell:>width$}"),
            };
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
    let mut line = start.to_owned();
    let mut used = line.chars().count();
    let mut empty = true;
    for word in text.split(' ') {
        let length = word.chars().count();
        if !empty && used + 1 + length > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            indent.clone_into(&mut line);
            used = indent.chars().count();
            empty = true;
        }
        if !std::mem::replace(&mut empty, false) {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    let _ = writeln!(out, "{}", line.trim_end());
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
}
