//! Tables of a page: of bounded size, and with numbers that a script can sort.

use usdtrec_view::columns::shortened;
use usdtrec_view::cut_apart::shortened_apart;
use usdtrec_view::table::{Table, TableCell};

use crate::html::markup::Markup;
use crate::html::notes::put_notes;

/// Maximum length of a text in a table, characters.
const MAX_CHARACTERS: usize = 300;

/// A table. Rows for which there is no room are counted.
#[derive(Debug)]
pub(crate) struct HtmlTable {
    class: &'static str,
    columns: Vec<String>,
    /// Cells of the first row that are numbers: their columns are aligned on the right, and sorted by their values.
    are_numbers: Vec<bool>,
    rows: Markup,
    /// Maximum length of the rows, bytes.
    most: usize,
    left_out: usize,
    /// Whether the script can sort it.
    is_sorted: bool,
}

impl HtmlTable {
    /// A table without rows, which are to have at most so many bytes.
    pub(crate) fn new<'n>(
        class: &'static str,
        columns: impl IntoIterator<Item = &'n str>,
        most: usize,
    ) -> Self {
        Self {
            class,
            columns: columns.into_iter().map(str::to_owned).collect(),
            are_numbers: Vec::new(),
            rows: Markup::default(),
            most,
            left_out: 0,
            is_sorted: true,
        }
    }

    /// A table of an answer.
    pub(crate) fn from_table(class: &'static str, table: &Table, most: usize) -> Self {
        let columns = table.columns.iter().map(String::as_str);
        let mut shown = Self::new(class, columns, most);
        let mut rows = table.rows.clone();
        for at in 0..table.columns.len() {
            shorten_values(&mut rows, at);
        }
        for (at, row) in rows.iter().enumerate() {
            let below = table.below.get(&at).map_or(&[][..], Vec::as_slice);
            shown.put_row(row, below, None);
        }
        shown
    }

    /// Keeps the order of its rows.
    pub(crate) const fn in_order(mut self) -> Self {
        self.is_sorted = false;
        self
    }

    /// Whether it has no rows.
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// Appends a row if it has room; after one that does not, there are none. `drawing` is its last cell.
    pub(crate) fn row(&mut self, cells: &[TableCell], drawing: Option<&Markup>) {
        self.put_row(cells, &[], drawing);
    }

    /// The same with a list below its first cell.
    fn put_row(&mut self, cells: &[TableCell], below: &[String], drawing: Option<&Markup>) {
        let mut row = Markup::default();
        row.tag("<tr>");
        for (at, cell) in cells.iter().enumerate() {
            put_cell(cell, if at == 0 { below } else { &[] }, &mut row);
        }
        if let Some(drawing) = drawing {
            row.tag("<td>").append(drawing).tag("</td>");
        }
        row.tag("</tr>\n");
        if self.are_numbers.is_empty() {
            self.are_numbers = cells.iter().map(TableCell::is_number).collect();
        }
        if self.left_out > 0 || self.rows.len() + row.len() > self.most {
            self.left_out += 1;
        } else {
            self.rows.append(&row);
        }
    }

    /// Counts rows that are left out for another reason.
    pub(crate) const fn leave_out(&mut self, rows: usize) {
        self.left_out += rows;
    }

    /// Appends the table, and how many rows are left out.
    pub(crate) fn put(&self, out: &mut Markup) {
        out.tag("<div class=\"wide\"><table")
            .attribute("class", self.class);
        if self.is_sorted {
            out.tag(" data-sort");
        }
        out.tag(">\n<thead><tr>");
        for (at, column) in self.columns.iter().enumerate() {
            out.tag(match self.are_numbers.get(at) {
                Some(true) => "<th scope=\"col\" class=\"n\">",
                _ => "<th scope=\"col\">",
            });
            out.text(column).tag("</th>");
        }
        out.tag("</tr></thead>\n<tbody>\n");
        out.append(&self.rows).tag("</tbody></table></div>\n");
        if self.left_out > 0 {
            let more = format!("{} more left out here", self.left_out);
            put_notes("note", [more], out);
        }
    }
}

/// Shortens the values in a column, so that those that differ still do.
fn shorten_values(rows: &mut [Vec<TableCell>], at: usize) {
    let cells = rows.iter_mut().filter_map(|row| row.get_mut(at));
    let values = cells.filter_map(|cell| match cell {
        TableCell::Value(value) => Some(value),
        _ => None,
    });
    let values: Vec<&mut String> = values.collect();
    let whole: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    let short = shortened_apart(&whole, MAX_CHARACTERS - 1);
    for (value, short) in values.into_iter().zip(short) {
        *value = short;
    }
}

fn put_cell(cell: &TableCell, below: &[String], row: &mut Markup) {
    match cell {
        TableCell::Text(text) => row.tag("<td>").text(&shortened(text, MAX_CHARACTERS)),
        TableCell::Code(text) | TableCell::Value(text) => row
            .tag("<td class=\"c\">")
            .text(&shortened(text, MAX_CHARACTERS)),
        TableCell::Number { shown, value } => {
            row.tag("<td class=\"n\"");
            if let Some(value) = value {
                row.attribute("data-v", &value.to_string());
            }
            row.tag(">").text(shown)
        }
    };
    if !below.is_empty() {
        row.tag("<br><small>")
            .text(&below.join(", "))
            .tag("</small>");
    }
    row.tag("</td>");
}
