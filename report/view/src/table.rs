//! Tables of answers. Text and pages show the same ones: columns, rows and their order are written once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use usdtrec_format::escape::escape;

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a cell for each column.
    pub rows: Vec<Vec<TableCell>>,
    /// A list below a row, by the number of the row. In text, as much of it as fits into a line.
    pub below: BTreeMap<usize, Vec<String>>,
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
        /// Without its unit: what it is sorted by.
        value: Option<SortValue>,
    },
}

/// A number that cells are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum SortValue {
    /// An integer.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A number in decimal.
    Decimal(String),
}

impl fmt::Display for SortValue {
    /// In decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => f.write_str(itoa::Buffer::new().format(*number)),
            Self::Float(number) => number.fmt(f),
            Self::Decimal(number) => f.write_str(number),
        }
    }
}

impl From<u64> for SortValue {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i32> for SortValue {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<usize> for SortValue {
    fn from(number: usize) -> Self {
        Self::Integer(number as i128)
    }
}

impl From<i128> for SortValue {
    fn from(number: i128) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for SortValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<String> for SortValue {
    fn from(number: String) -> Self {
        Self::Decimal(number)
    }
}

impl Table {
    /// A table without rows.
    pub fn new<N: AsRef<str>>(columns: impl IntoIterator<Item = N>) -> Self {
        let columns = columns.into_iter();
        Self {
            columns: columns.map(|name| name.as_ref().to_owned()).collect(),
            rows: Vec::new(),
            below: BTreeMap::new(),
        }
    }
}

impl TableCell {
    /// A number that is shown as it is.
    pub fn count(number: impl Into<SortValue>) -> Self {
        let value = number.into();
        Self::number(value.to_string(), value)
    }

    /// A number that is shown in another way.
    pub fn number(shown: String, value: impl Into<SortValue>) -> Self {
        Self::Number {
            shown,
            value: Some(value.into()),
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
