//! Values of arguments in columns.

use std::borrow::Cow;

use usdtrec_format::{StringAt, Value};
use usdtrec_trace::form::Form;

use crate::dataset_table::ColumnType;
use crate::parquet::argument_type::{ArgumentColumn, ArgumentKind};
use crate::parquet::column::BatchColumn;
use crate::typed_value::{TypedValue, shown_string};

/// An argument of an event in a table.
#[derive(Clone, Debug)]
pub(crate) struct TableArgument {
    /// Which argument of the event it is.
    pub(crate) place: usize,
    /// Its first column.
    pub(crate) first: usize,
    pub(crate) kind: ArgumentKind,
    pub(crate) form: Form,
}

/// What the columns of an argument after the first one take of a value. What is `None` is null.
#[derive(Default)]
struct ArgumentCells<'v> {
    text: Option<Cow<'v, str>>,
    missing: Option<Cow<'v, str>>,
    cut: Option<bool>,
    bytes: Option<&'v [u8]>,
    demangled: Option<String>,
    number: Option<i64>,
}

impl ArgumentCells<'_> {
    /// Puts what there is into the columns after the first one. The end of the row puts null into the others.
    fn put(&self, columns: &mut [BatchColumn], kind: ArgumentKind) {
        let kinds = kind.columns().iter().skip(1);
        for (column, kind) in columns.iter_mut().zip(kinds) {
            match kind {
                ArgumentColumn::Missing => column.text(self.missing.as_deref()),
                ArgumentColumn::Cut => column.bool(self.cut),
                ArgumentColumn::Bytes => column.bytes(self.bytes),
                ArgumentColumn::Value | ArgumentColumn::Text => column.text(self.text.as_deref()),
                ArgumentColumn::Number => column.int64(self.number),
                ArgumentColumn::Demangled => column.text(self.demangled.as_deref()),
            }
        }
    }
}

impl TableArgument {
    /// Puts a value into the columns of the argument.
    #[inline]
    pub(crate) fn put(&self, columns: &mut [BatchColumn], value: &Value) {
        let columns = columns.get_mut(self.first..).unwrap_or_default();
        let Some((first, others)) = columns.split_first_mut() else {
            return;
        };
        let cells = match self.kind {
            ArgumentKind::Number { kind, .. } => {
                let number = NumberCell::new(kind, value);
                if let (Some(number), false) = (number, matches!(value, Value::String(_))) {
                    // Of most arguments this is all.
                    return number.put(first);
                }
                self.number(number, first, value)
            }
            ArgumentKind::Bool => {
                let is = match TypedValue::new(&self.form, value) {
                    TypedValue::Bool(is) => Some(is),
                    _ => None,
                };
                first.bool(is);
                self.missing_if(is.is_none(), value)
            }
            ArgumentKind::Address => {
                let address = match TypedValue::new(&self.form, value) {
                    TypedValue::Address(address) => Some(address),
                    _ => None,
                };
                first.uint64(address);
                self.missing_if(address.is_none(), value)
            }
            ArgumentKind::Bytes => self.bytes(first, value),
            ArgumentKind::Words | ArgumentKind::String { .. } => self.text(first, value),
        };
        cells.put(others, self.kind);
    }

    fn number<'v>(
        &self,
        number: Option<NumberCell>,
        column: &mut BatchColumn,
        value: &'v Value,
    ) -> ArgumentCells<'v> {
        match number {
            Some(number) => number.put(column),
            None => column.pad_one(),
        }
        match (number, value) {
            (_, Value::String(string)) => of_string(string),
            (Some(_), _) => ArgumentCells::default(),
            (None, value) => self.missing(value),
        }
    }

    fn bytes<'v>(&self, column: &mut BatchColumn, value: &'v Value) -> ArgumentCells<'v> {
        match value {
            Value::String(array) => {
                column.bytes(Some(&array.bytes));
                ArgumentCells {
                    cut: Some(array.cut),
                    ..ArgumentCells::default()
                }
            }
            value => {
                column.pad_one();
                self.missing(value)
            }
        }
    }

    fn text<'v>(&self, column: &mut BatchColumn, value: &'v Value) -> ArgumentCells<'v> {
        if let (Value::String(string), false) = (value, self.form == Form::Bytes) {
            let mut cells = of_string(string);
            cells.demangled = self.form.readable(value);
            column.text(cells.text.as_deref());
            return cells;
        }
        let number = match value {
            Value::Signed(number) => Some(*number),
            Value::Unsigned(number) => i64::try_from(*number).ok(),
            _ => None,
        };
        match TypedValue::new(&self.form, value) {
            TypedValue::Missing(reason) => {
                column.pad_one();
                ArgumentCells {
                    missing: Some(reason.into()),
                    number,
                    ..ArgumentCells::default()
                }
            }
            value => {
                column.text(Some(&shown(value)));
                ArgumentCells {
                    number,
                    ..ArgumentCells::default()
                }
            }
        }
    }

    fn missing_if<'v>(&self, is_missing: bool, value: &'v Value) -> ArgumentCells<'v> {
        match is_missing {
            true => self.missing(value),
            false => ArgumentCells::default(),
        }
    }

    /// Why there is no value in the column: it is missing, or not of the column's type.
    fn missing<'v>(&self, value: &'v Value) -> ArgumentCells<'v> {
        let reason = match TypedValue::new(&self.form, value) {
            TypedValue::Missing(reason) => reason,
            TypedValue::Address(address) => format!("memory at {address:#x} not captured"),
            value => format!("not of the column's type: {}", shown(value)),
        };
        ArgumentCells {
            missing: Some(reason.into()),
            ..ArgumentCells::default()
        }
    }
}

/// A number in a column.
#[derive(Clone, Copy)]
enum NumberCell {
    Int64(i64),
    UInt64(u64),
    Float64(f64),
}

impl NumberCell {
    /// The number of a value in a column of a type; `None` if it has none, or the column cannot have it.
    #[inline]
    fn new(kind: ColumnType, value: &Value) -> Option<Self> {
        Some(match (kind, value) {
            (ColumnType::Float64, Value::Float32(number)) => Self::Float64((*number).into()),
            (ColumnType::Float64, Value::Float64(number)) => Self::Float64(*number),
            (ColumnType::Float64, Value::Signed(number)) => {
                Self::Float64(i32::try_from(*number).ok()?.into())
            }
            (ColumnType::Float64, Value::Unsigned(number)) => {
                Self::Float64(u32::try_from(*number).ok()?.into())
            }
            (ColumnType::UInt64, Value::Unsigned(number)) => Self::UInt64(*number),
            (ColumnType::UInt64, Value::Signed(number)) => {
                Self::UInt64(u64::try_from(*number).ok()?)
            }
            (ColumnType::UInt64, Value::String(string)) if string.guessed => {
                Self::UInt64(string.address)
            }
            (ColumnType::Int64, Value::Signed(number)) => Self::Int64(*number),
            (ColumnType::Int64, Value::Unsigned(number)) => {
                Self::Int64(i64::try_from(*number).ok()?)
            }
            (ColumnType::Int64, Value::String(string)) if string.guessed => {
                Self::Int64(i64::try_from(string.address).ok()?)
            }
            _ => return None,
        })
    }

    #[inline]
    fn put(self, column: &mut BatchColumn) {
        match self {
            Self::Int64(number) => column.int64(Some(number)),
            Self::UInt64(number) => column.uint64(Some(number)),
            Self::Float64(number) => column.float64(Some(number)),
        }
    }
}

/// The cells of a string.
fn of_string(string: &StringAt) -> ArgumentCells<'_> {
    let whole = shown_string(&string.bytes);
    ArgumentCells {
        bytes: matches!(whole, Cow::Owned(_)).then_some(string.bytes.as_slice()),
        text: Some(whole),
        cut: Some(string.cut),
        ..ArgumentCells::default()
    }
}

/// A value of another type as text.
fn shown(value: TypedValue<'_>) -> Cow<'_, str> {
    match value {
        TypedValue::Unsigned(number) => number.to_string().into(),
        TypedValue::Signed(number) => number.to_string().into(),
        TypedValue::Float(number) => number.to_string().into(),
        TypedValue::Bool(is) => is.to_string().into(),
        TypedValue::Address(address) => format!("{address:#x}").into(),
        TypedValue::String(string) => string,
        TypedValue::Missing(reason) => reason.into(),
    }
}
