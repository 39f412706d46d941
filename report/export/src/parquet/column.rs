//! Columns of Arrow: their names and types, and the rows that fill them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    UInt64Builder,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use usdtrec_trace::process::process_field::ProcessValue;

use crate::dataset_table::{ColumnType, DatasetTable};

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// Whether its numbers are close to those before, as times are, or always the same.
    pub(crate) is_steady: bool,
}

impl ColumnSpec {
    pub(crate) fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            kind,
            is_steady: false,
        }
    }

    /// The columns that a table always has. Those of times and of the trace are steady.
    pub(crate) fn of_table(table: &DatasetTable) -> Vec<Self> {
        let columns = table.columns().into_iter().map(|(name, kind)| Self {
            is_steady: kind == ColumnType::Int64 && (name.ends_with("_ns") || name == "trace_id"),
            ..Self::new(name, kind)
        });
        columns.collect()
    }

    /// The schema of columns. Every column may be null.
    pub(crate) fn schema(specs: &[Self]) -> SchemaRef {
        let fields = specs.iter().map(|spec| {
            let kind = match spec.kind {
                ColumnType::Int32 => DataType::Int32,
                ColumnType::Int64 => DataType::Int64,
                ColumnType::UInt64 => DataType::UInt64,
                ColumnType::Float64 => DataType::Float64,
                ColumnType::Bool => DataType::Boolean,
                ColumnType::Text => DataType::Utf8,
                ColumnType::Binary => DataType::Binary,
            };
            Field::new(&spec.name, kind, true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// The value of a column in a row.
#[derive(Clone, Debug, Default)]
pub(crate) enum ColumnCell<'v> {
    #[default]
    Null,
    Int32(i32),
    Int64(i64),
    UInt64(u64),
    Float64(f64),
    Bool(bool),
    Text(Cow<'v, str>),
    Binary(&'v [u8]),
}

/// Makes cells of values.
macro_rules! cells_of {
    ($($kind:ty => $variant:ident),*) => {$(
        impl<'v> From<$kind> for ColumnCell<'v> {
            #[inline]
            fn from(value: $kind) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

cells_of! {
    i32 => Int32, i64 => Int64, u64 => UInt64, f64 => Float64, bool => Bool,
    &'v str => Text, String => Text, Cow<'v, str> => Text, &'v [u8] => Binary
}

impl<'v, T: Into<Self>> From<Option<T>> for ColumnCell<'v> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'v> From<&'v ProcessValue<'v>> for ColumnCell<'v> {
    #[inline]
    fn from(value: &'v ProcessValue<'v>) -> Self {
        match value {
            ProcessValue::Number(number) => Self::count(*number),
            value => value.text().into(),
        }
    }
}

impl ColumnCell<'_> {
    /// An unsigned number in a signed column; null beyond 2^63.
    #[inline]
    pub(crate) fn count(value: impl Into<Option<u64>>) -> Self {
        let value = value.into();
        value.and_then(|value| i64::try_from(value).ok()).into()
    }
}

/// Maximum bytes of the strings of a column: Arrow counts them in 31 bits.
const MAX_STRING_BYTES: usize = i32::MAX as usize;

/// The rows of a column that are not yet in a batch.
#[derive(Debug)]
pub(crate) struct BatchColumn {
    values: Builder,
    rows: usize,
    /// The last of these rows, which are null and not yet in the builder: many columns have nothing else.
    nulls: usize,
    /// Whether a string was not taken because it was too long.
    pub(crate) is_overfull: bool,
}

/// Does the same with the builder of any type.
macro_rules! of_any_type {
    ($builder:expr, $values:ident => $what:expr) => {
        match $builder {
            Builder::Int32($values) => $what,
            Builder::Int64($values) => $what,
            Builder::UInt64($values) => $what,
            Builder::Float64($values) => $what,
            Builder::Bool($values) => $what,
            Builder::Text($values) => $what,
            Builder::Binary($values) => $what,
        }
    };
}

/// Appends the nulls that are not yet in a builder, if there are any: without nulls it has no bits of validity. Then a value, if one is given.
macro_rules! append {
    ($nulls:expr, $values:expr $(, $value:expr)?) => {{
        if *$nulls > 0 {
            $values.append_nulls(std::mem::take($nulls));
        }
        $($values.append_value($value);)?
    }};
}

#[derive(Debug)]
enum Builder {
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Float64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Binary(BinaryBuilder),
}

impl BatchColumn {
    pub(crate) fn new(kind: ColumnType) -> Self {
        // A dataset may have thousands of columns with few rows.
        let values = match kind {
            ColumnType::Int32 => Builder::Int32(Int32Builder::with_capacity(0)),
            ColumnType::Int64 => Builder::Int64(Int64Builder::with_capacity(0)),
            ColumnType::UInt64 => Builder::UInt64(UInt64Builder::with_capacity(0)),
            ColumnType::Float64 => Builder::Float64(Float64Builder::with_capacity(0)),
            ColumnType::Bool => Builder::Bool(BooleanBuilder::with_capacity(0)),
            ColumnType::Text => Builder::Text(StringBuilder::with_capacity(0, 0)),
            ColumnType::Binary => Builder::Binary(BinaryBuilder::with_capacity(0, 0)),
        };
        Self {
            values,
            rows: 0,
            nulls: 0,
            is_overfull: false,
        }
    }

    /// Appends null until there are so many rows.
    #[inline]
    pub(crate) fn pad(&mut self, rows: usize) {
        self.nulls += rows.saturating_sub(self.rows);
        self.rows = self.rows.max(rows);
    }

    /// Bytes of the values.
    pub(crate) fn size(&self) -> usize {
        match &self.values {
            Builder::Int32(_) => self.rows * 4,
            Builder::Int64(_) | Builder::UInt64(_) | Builder::Float64(_) => self.rows * 8,
            Builder::Bool(_) => self.rows / 8,
            Builder::Text(values) => self.rows * 4 + values.values_slice().len(),
            Builder::Binary(values) => self.rows * 4 + values.values_slice().len(),
        }
    }

    /// Appends a value; null if it is of another type.
    #[inline]
    pub(crate) fn put(&mut self, cell: ColumnCell<'_>) {
        let nulls = &mut self.nulls;
        match (&mut self.values, cell) {
            (Builder::Int32(values), ColumnCell::Int32(value)) => append!(nulls, values, value),
            (Builder::Int64(values), ColumnCell::Int64(value)) => append!(nulls, values, value),
            (Builder::UInt64(values), ColumnCell::UInt64(value)) => append!(nulls, values, value),
            (Builder::Float64(values), ColumnCell::Float64(value)) => append!(nulls, values, value),
            (Builder::Bool(values), ColumnCell::Bool(value)) => append!(nulls, values, value),
            (Builder::Text(values), ColumnCell::Text(value))
                if fits(values.values_slice(), value.len()) =>
            {
                append!(nulls, values, value);
            }
            (Builder::Binary(values), ColumnCell::Binary(value))
                if fits(values.values_slice(), value.len()) =>
            {
                append!(nulls, values, value);
            }
            // A string that is too long is null, too.
            (Builder::Text(_), ColumnCell::Text(_))
            | (Builder::Binary(_), ColumnCell::Binary(_)) => {
                self.is_overfull = true;
                *nulls += 1;
            }
            _ => *nulls += 1,
        }
        self.rows += 1;
    }

    /// Gives all values away.
    pub(crate) fn take(&mut self) -> ArrayRef {
        self.rows = 0;
        of_any_type!(&mut self.values, values => {
            append!(&mut self.nulls, values);
            Arc::new(values.finish())
        })
    }
}

/// Whether there is a place for so many bytes after these.
#[inline]
const fn fits(bytes: &[u8], more: usize) -> bool {
    more <= MAX_STRING_BYTES - bytes.len()
}

/// Puts cells into the first columns of a row, one after the other.
#[inline]
pub(crate) fn put<'c>(
    columns: &mut [BatchColumn],
    cells: impl IntoIterator<Item = ColumnCell<'c>>,
) {
    for (column, cell) in columns.iter_mut().zip(cells) {
        column.put(cell);
    }
}
