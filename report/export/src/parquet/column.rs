//! A column of Arrow that is being filled.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
    UInt64Builder,
};

use crate::dataset_table::ColumnType;

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

/// Appends the nulls that are not yet in a builder, if there are any: without nulls it has no bits of validity.
macro_rules! append_nulls {
    ($nulls:expr, $values:expr) => {
        if $nulls > 0 {
            $values.append_nulls(std::mem::take(&mut $nulls));
        }
    };
}

/// Functions that append a number, or null if it is none or the column is of another type.
macro_rules! append {
    ($($name:ident($kind:ty): $variant:ident),*) => {$(
        #[inline]
        pub(crate) fn $name(&mut self, value: Option<$kind>) {
            match (&mut self.values, value) {
                (Builder::$variant(values), Some(value)) => {
                    append_nulls!(self.nulls, values);
                    values.append_value(value);
                }
                _ => return self.pad_one(),
            }
            self.rows += 1;
        }
    )*};
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

    /// Appends null.
    #[inline]
    pub(crate) fn pad_one(&mut self) {
        self.pad(self.rows + 1);
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

    append! {
        int32(i32): Int32,
        int64(i64): Int64,
        uint64(u64): UInt64,
        float64(f64): Float64,
        bool(bool): Bool
    }

    #[inline]
    pub(crate) fn text(&mut self, value: Option<&str>) {
        match (&mut self.values, value) {
            (Builder::Text(values), Some(value)) if fits(values.values_slice(), value.len()) => {
                append_nulls!(self.nulls, values);
                values.append_value(value);
            }
            (Builder::Text(_), Some(_)) => return self.refuse(),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn bytes(&mut self, value: Option<&[u8]>) {
        match (&mut self.values, value) {
            (Builder::Binary(values), Some(value)) if fits(values.values_slice(), value.len()) => {
                append_nulls!(self.nulls, values);
                values.append_value(value);
            }
            (Builder::Binary(_), Some(_)) => return self.refuse(),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    /// Appends null for a string that is too long.
    #[cold]
    fn refuse(&mut self) {
        self.is_overfull = true;
        self.pad_one();
    }

    /// Gives all values away.
    pub(crate) fn take(&mut self) -> ArrayRef {
        self.rows = 0;
        of_any_type!(&mut self.values, values => {
            append_nulls!(self.nulls, values);
            Arc::new(values.finish())
        })
    }
}

/// Whether there is a place for so many bytes after these.
#[inline]
const fn fits(bytes: &[u8], more: usize) -> bool {
    more <= MAX_STRING_BYTES - bytes.len()
}
