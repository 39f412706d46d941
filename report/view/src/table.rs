//! Tables of answers. Text and pages show the same ones: columns, rows and their order are written once.

use std::borrow::Cow;

use usdtrec_format::escape::escape;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a cell for each column.
    pub rows: Vec<Vec<TableCell>>,
}

/// A cell. What it shows is escaped by the view.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// Words.
    Text(String),
    /// The name of something in a program, which is shown whole.
    Code(String),
    /// A value that a program had, of any length: cut where it has no room.
    Value(String),
    /// A number, or what stands where one is not known.
    Number {
        /// As it is shown for people.
        shown: String,
        /// In decimal, without its unit.
        value: Option<String>,
    },
}

impl Table {
    /// A table without rows.
    pub fn new<N: AsRef<str>>(columns: impl IntoIterator<Item = N>) -> Self {
        let columns = columns.into_iter();
        Self {
            columns: columns.map(|name| name.as_ref().to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

impl TableCell {
    /// A number that is shown as it is.
    pub fn count(number: impl ToString) -> Self {
        let shown = number.to_string();
        Self::Number {
            value: Some(shown.clone()),
            shown,
        }
    }

    /// A number that is shown in another way.
    pub fn number(shown: String, value: impl ToString) -> Self {
        Self::Number {
            shown,
            value: Some(value.to_string()),
        }
    }

    /// A number by which nothing is sorted, or what stands for one.
    pub fn unsorted(shown: impl Into<String>) -> Self {
        Self::Number {
            shown: shown.into(),
            value: None,
        }
    }

    /// Whether it is aligned on the right.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Number { .. })
    }

    /// The cell in text.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        let (Self::Text(shown)
        | Self::Code(shown)
        | Self::Value(shown)
        | Self::Number { shown, .. }) = self;
        escape(shown)
    }
}
