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
    /// Whether a text was not taken because it was too long.
    pub(crate) is_overfull: bool,
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
            is_overfull: false,
        }
    }

    /// Appends null until there are so many rows.
    #[inline]
    pub(crate) fn pad(&mut self, rows: usize) {
        while self.rows < rows {
            self.pad_one();
        }
    }

    /// Appends null.
    pub(crate) fn pad_one(&mut self) {
        self.rows += 1;
        match &mut self.values {
            Builder::Int32(values) => values.append_null(),
            Builder::Int64(values) => values.append_null(),
            Builder::UInt64(values) => values.append_null(),
            Builder::Float64(values) => values.append_null(),
            Builder::Bool(values) => values.append_null(),
            Builder::Text(values) => values.append_null(),
            Builder::Binary(values) => values.append_null(),
        }
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

    #[inline]
    pub(crate) fn int32(&mut self, value: Option<i32>) {
        match (&mut self.values, value) {
            (Builder::Int32(values), Some(value)) => values.append_value(value),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn int64(&mut self, value: Option<i64>) {
        match (&mut self.values, value) {
            (Builder::Int64(values), Some(value)) => values.append_value(value),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn uint64(&mut self, value: Option<u64>) {
        match (&mut self.values, value) {
            (Builder::UInt64(values), Some(value)) => values.append_value(value),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn float64(&mut self, value: Option<f64>) {
        match (&mut self.values, value) {
            (Builder::Float64(values), Some(value)) => values.append_value(value),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: Option<bool>) {
        match (&mut self.values, value) {
            (Builder::Bool(values), Some(value)) => values.append_value(value),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    #[inline]
    pub(crate) fn text(&mut self, value: Option<&str>) {
        match (&mut self.values, value) {
            (Builder::Text(values), Some(value)) if fits(values.values_slice(), value.len()) => {
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
                values.append_value(value);
            }
            (Builder::Binary(_), Some(_)) => return self.refuse(),
            _ => return self.pad_one(),
        }
        self.rows += 1;
    }

    /// Appends null for a text that is too long.
    #[cold]
    fn refuse(&mut self) {
        self.is_overfull = true;
        self.pad_one();
    }

    /// Gives all values away.
    pub(crate) fn take(&mut self) -> ArrayRef {
        self.rows = 0;
        match &mut self.values {
            Builder::Int32(values) => Arc::new(values.finish()),
            Builder::Int64(values) => Arc::new(values.finish()),
            Builder::UInt64(values) => Arc::new(values.finish()),
            Builder::Float64(values) => Arc::new(values.finish()),
            Builder::Bool(values) => Arc::new(values.finish()),
            Builder::Text(values) => Arc::new(values.finish()),
            Builder::Binary(values) => Arc::new(values.finish()),
        }
    }
}

/// Whether there is a place for so many bytes after these.
#[inline]
const fn fits(bytes: &[u8], more: usize) -> bool {
    more <= MAX_STRING_BYTES - bytes.len()
}
