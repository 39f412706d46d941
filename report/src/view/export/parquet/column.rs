//! A column of a row group: values in memory until the group is written.

use std::slice::IterMut;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// Type of a column. Every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int32,
    Int64,
    UInt64,
    Float64,
    Bool,
    /// UTF-8.
    Text,
    Binary,
}

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// Whether its numbers are mostly different and close to those before, as times are.
    pub(crate) is_steady: bool,
}

/// Values of a column.
#[derive(Debug)]
pub(crate) struct ParquetColumn {
    values: ColumnValues,
    /// Of each row 1 if there is a value, else 0.
    levels: Vec<i16>,
}

/// The values that are not null.
#[derive(Debug)]
pub(crate) enum ColumnValues {
    Int32(Vec<i32>),
    /// Unsigned integers as the signed ones of the same bits.
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    Bytes {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    },
}

/// All values of a column.
pub(crate) struct TakenColumn {
    pub(crate) values: ColumnValues,
    /// Of each row 1 if there is a value, else 0.
    pub(crate) levels: Vec<i16>,
}

impl ColumnType {
    /// The name of the type in documents and in the table `columns`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float64 => "double",
            Self::Bool => "boolean",
            Self::Text => "string",
            Self::Binary => "binary",
        }
    }
}

impl ColumnSpec {
    pub(crate) fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            kind,
            is_steady: false,
        }
    }

    /// A column of times.
    pub(crate) fn steady(name: impl Into<String>) -> Self {
        Self {
            is_steady: true,
            ..Self::new(name, ColumnType::Int64)
        }
    }

    /// The column in Parquet's schema.
    pub(crate) fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.kind {
            ColumnType::Int32 => (PhysicalType::INT32, None),
            ColumnType::Int64 => (PhysicalType::INT64, None),
            ColumnType::UInt64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::Float64 => (PhysicalType::DOUBLE, None),
            ColumnType::Bool => (PhysicalType::BOOLEAN, None),
            ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Binary => (PhysicalType::BYTE_ARRAY, None),
        };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }
}

impl ParquetColumn {
    pub(crate) fn new(kind: ColumnType) -> Self {
        Self {
            values: ColumnValues::new(kind),
            levels: Vec::new(),
        }
    }

    /// Appends null until there are so many rows.
    #[inline]
    pub(crate) fn pad(&mut self, rows: usize) {
        if self.levels.len() < rows {
            self.levels.resize(rows, 0);
        }
    }

    /// Appends null.
    #[inline]
    pub(crate) fn pad_one(&mut self) {
        self.levels.push(0);
    }

    /// Bytes in memory.
    pub(crate) fn size(&self) -> usize {
        let values = match &self.values {
            ColumnValues::Int32(values) => values.len() * 4,
            ColumnValues::Int64(values) => values.len() * 8,
            ColumnValues::Float64(values) => values.len() * 8,
            ColumnValues::Bool(values) => values.len(),
            // An end, and what the writer needs of each.
            ColumnValues::Bytes { bytes, ends } => bytes.len() + ends.len() * 48,
        };
        values + self.levels.len() * 2
    }

    #[inline]
    pub(crate) fn int32(&mut self, value: Option<i32>) {
        match (&mut self.values, value) {
            (ColumnValues::Int32(values), Some(value)) => {
                values.push(value);
                self.levels.push(1);
            }
            _ => self.levels.push(0),
        }
    }

    #[inline]
    pub(crate) fn int64(&mut self, value: Option<i64>) {
        match (&mut self.values, value) {
            (ColumnValues::Int64(values), Some(value)) => {
                values.push(value);
                self.levels.push(1);
            }
            _ => self.levels.push(0),
        }
    }

    /// An integer of a column of [`ColumnType::UInt64`].
    #[inline]
    pub(crate) fn uint64(&mut self, value: Option<u64>) {
        self.int64(value.map(u64::cast_signed));
    }

    #[inline]
    pub(crate) fn float64(&mut self, value: Option<f64>) {
        match (&mut self.values, value) {
            (ColumnValues::Float64(values), Some(value)) => {
                values.push(value);
                self.levels.push(1);
            }
            _ => self.levels.push(0),
        }
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: Option<bool>) {
        match (&mut self.values, value) {
            (ColumnValues::Bool(values), Some(value)) => {
                values.push(value);
                self.levels.push(1);
            }
            _ => self.levels.push(0),
        }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, value: Option<&[u8]>) {
        match (&mut self.values, value) {
            (ColumnValues::Bytes { bytes, ends }, Some(value)) => {
                bytes.extend_from_slice(value);
                ends.push(bytes.len());
                self.levels.push(1);
            }
            _ => self.levels.push(0),
        }
    }

    #[inline]
    pub(crate) fn text(&mut self, value: Option<&str>) {
        self.bytes(value.map(str::as_bytes));
    }

    /// Gives all values away.
    pub(crate) fn take(&mut self, kind: ColumnType) -> TakenColumn {
        TakenColumn {
            values: std::mem::replace(&mut self.values, ColumnValues::new(kind)),
            levels: std::mem::take(&mut self.levels),
        }
    }

    /// Hands all values to a writer, and frees their memory.
    pub(crate) fn write(
        &mut self,
        kind: ColumnType,
        writer: &mut ColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let TakenColumn { values, levels } = self.take(kind);
        let levels = Some(levels.as_slice());
        match (values, writer) {
            (ColumnValues::Int32(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(&values, levels, None)
            }
            (ColumnValues::Int64(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(&values, levels, None)
            }
            (ColumnValues::Float64(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(&values, levels, None)
            }
            (ColumnValues::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(&values, levels, None)
            }
            (ColumnValues::Bytes { bytes, ends }, ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(&slices(bytes, &ends), levels, None)
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        }?;
        Ok(())
    }
}

/// The columns of a row, one after the other.
pub(crate) struct RowCells<'c> {
    columns: IterMut<'c, ParquetColumn>,
}

impl<'c> RowCells<'c> {
    pub(crate) fn new(columns: &'c mut [ParquetColumn]) -> Self {
        Self {
            columns: columns.iter_mut(),
        }
    }

    #[inline]
    pub(crate) fn int32(&mut self, value: Option<i32>) {
        if let Some(column) = self.columns.next() {
            column.int32(value);
        }
    }

    #[inline]
    pub(crate) fn int64(&mut self, value: Option<i64>) {
        if let Some(column) = self.columns.next() {
            column.int64(value);
        }
    }

    /// An unsigned number in a signed column; null beyond 2^63.
    #[inline]
    pub(crate) fn count(&mut self, value: Option<u64>) {
        self.int64(value.and_then(|value| i64::try_from(value).ok()));
    }

    #[inline]
    pub(crate) fn uint64(&mut self, value: Option<u64>) {
        if let Some(column) = self.columns.next() {
            column.uint64(value);
        }
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: Option<bool>) {
        if let Some(column) = self.columns.next() {
            column.bool(value);
        }
    }

    #[inline]
    pub(crate) fn text(&mut self, value: Option<&str>) {
        if let Some(column) = self.columns.next() {
            column.text(value);
        }
    }
}

/// The values of one memory.
fn slices(bytes: Vec<u8>, ends: &[usize]) -> Vec<ByteArray> {
    let whole = ByteArray::from(bytes);
    let mut start = 0;
    let values = ends.iter().map(|&end| {
        let value = whole.slice(start, end - start);
        start = end;
        value
    });
    values.collect()
}

impl ColumnValues {
    const fn new(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int32 => Self::Int32(Vec::new()),
            ColumnType::Int64 | ColumnType::UInt64 => Self::Int64(Vec::new()),
            ColumnType::Float64 => Self::Float64(Vec::new()),
            ColumnType::Bool => Self::Bool(Vec::new()),
            ColumnType::Text | ColumnType::Binary => Self::Bytes {
                bytes: Vec::new(),
                ends: Vec::new(),
            },
        }
    }
}
