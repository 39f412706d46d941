//! Tables of a page: of bounded size, and with numbers that a script can sort.

use crate::html::markup::{Markup, shortened};

/// Maximum length of a text in a table, characters.
const MAX_CHARACTERS: usize = 300;

/// The heading of a column.
#[derive(Clone, Debug)]
pub(crate) struct HtmlColumn {
    pub(crate) name: String,
    /// Whether it is of numbers, which are aligned on the right and sorted by their values.
    pub(crate) is_number: bool,
}

/// A cell.
#[derive(Clone, Debug)]
pub(crate) enum HtmlCell {
    Text(String),
    /// A text in the letters of code: a name, or a value.
    Code(String),
    /// A number: as it is shown, and in decimal without its unit.
    Number {
        shown: String,
        value: String,
    },
    /// What should be a number, and is not known.
    NoNumber(&'static str),
    Part(Markup),
}

/// A table. Rows for which there is no room are counted.
#[derive(Debug)]
pub(crate) struct HtmlTable {
    class: &'static str,
    columns: Vec<HtmlColumn>,
    rows: Markup,
    /// Maximum length of the rows, bytes.
    most: usize,
    left_out: usize,
    /// Whether the script can sort it.
    is_sorted: bool,
}

impl HtmlColumn {
    /// Columns by their names, those from a place on of numbers.
    pub(crate) fn all(names: &[&str], first_number: usize) -> Vec<Self> {
        let names = names.iter().enumerate();
        let columns = names.map(|(at, &name)| Self {
            name: name.to_owned(),
            is_number: at >= first_number,
        });
        columns.collect()
    }
}

impl HtmlCell {
    /// A number that is shown as it is.
    pub(crate) fn count(number: u64) -> Self {
        Self::number(number.to_string(), number)
    }

    /// A number that is shown in another way.
    pub(crate) fn number(shown: String, value: impl ToString) -> Self {
        Self::Number {
            shown,
            value: value.to_string(),
        }
    }
}

impl HtmlTable {
    /// A table whose rows have at most so many bytes.
    pub(crate) fn new(class: &'static str, columns: Vec<HtmlColumn>, most: usize) -> Self {
        Self {
            class,
            columns,
            rows: Markup::default(),
            most,
            left_out: 0,
            is_sorted: true,
        }
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

    /// Appends a row if it has room; after one that does not, there are none.
    pub(crate) fn row(&mut self, cells: &[HtmlCell]) {
        let mut row = Markup::default();
        row.tag("<tr>");
        for cell in cells {
            put_cell(cell, &mut row);
        }
        row.tag("</tr>\n");
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
        for column in &self.columns {
            out.tag(match column.is_number {
                true => "<th scope=\"col\" class=\"n\">",
                false => "<th scope=\"col\">",
            });
            out.text(&column.name).tag("</th>");
        }
        out.tag("</tr></thead>\n<tbody>\n");
        out.append(&self.rows).tag("</tbody></table></div>\n");
        if self.left_out > 0 {
            let more = format!("{} more left out here", self.left_out);
            out.tag("<p class=\"note\">").text(&more).tag("</p>\n");
        }
    }
}

fn put_cell(cell: &HtmlCell, row: &mut Markup) {
    match cell {
        HtmlCell::Text(text) => row.tag("<td>").text(&shortened(text, MAX_CHARACTERS)),
        HtmlCell::Code(text) => row
            .tag("<td class=\"c\">")
            .text(&shortened(text, MAX_CHARACTERS)),
        HtmlCell::Number { shown, value } => row
            .tag("<td class=\"n\"")
            .attribute("data-v", value)
            .tag(">")
            .text(shown),
        HtmlCell::NoNumber(shown) => row.tag("<td class=\"n\">").text(shown),
        HtmlCell::Part(part) => row.tag("<td>").append(part),
    };
    row.tag("</td>");
}
