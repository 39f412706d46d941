//! Rows in columns, until they are a record batch.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::view::export::dataset_table::ColumnType;
use crate::view::export::parquet::column::ParquetColumn;
use crate::view::export::parquet::column_spec::ColumnSpec;
use crate::view::export::parquet::column_values::{BytesList, ColumnValues};
use crate::view::export::parquet::taken_column::TakenColumn;

/// Rows of a batch, at most.
const ROWS: usize = 1 << 16;
/// Bytes of a batch, about.
const BATCH_BYTES: usize = 16 << 20;
/// Rows between two looks at what the columns take.
const LOOK: usize = 32;

/// Takes batches until it breaks.
pub(crate) type EachBatch<'e> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'e;

/// A table.
pub(crate) struct ArrowTable<'e> {
    specs: Vec<ColumnSpec>,
    columns: Vec<ParquetColumn>,
    schema: SchemaRef,
    rows: usize,
    each: &'e mut EachBatch<'e>,
}

/// The schema of columns. Every column may be null.
pub(crate) fn schema(specs: &[ColumnSpec]) -> SchemaRef {
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

impl<'e> ArrowTable<'e> {
    pub(crate) fn new(specs: Vec<ColumnSpec>, each: &'e mut EachBatch<'e>) -> Self {
        let columns = specs.iter().map(|spec| ParquetColumn::new(spec.kind));
        Self {
            columns: columns.collect(),
            schema: schema(&specs),
            specs,
            rows: 0,
            each,
        }
    }

    /// The columns of the next row, each of which takes one value.
    pub(crate) fn row(&mut self) -> &mut [ParquetColumn] {
        &mut self.columns
    }

    /// Ends the row; columns that took no value are null. The error ends the walk.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        for column in &mut self.columns {
            column.pad(self.rows);
        }
        if !self.rows.is_multiple_of(LOOK) {
            return Ok(());
        }
        let size: usize = self.columns.iter().map(ParquetColumn::size).sum();
        if self.rows >= ROWS || size >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands over the rows in memory.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = self.columns.iter_mut().zip(&self.specs);
        let arrays = columns.map(|(column, spec)| array(column.take(), spec.kind));
        let arrays = arrays.collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::clone(&self.schema);
        let batch = arrays.and_then(|all| RecordBatch::try_new_with_options(schema, all, &options));
        self.rows = 0;
        if (self.each)(batch.map_err(io::Error::other)?).is_break() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }
}

/// A value for each row, from those that are not null.
fn spread<T: Copy + Default>(values: &[T], levels: &[i16]) -> Vec<T> {
    let mut values = values.iter();
    let mut next = || values.next().copied().unwrap_or_default();
    let of_row = levels.iter().map(|level| match level {
        0 => T::default(),
        _ => next(),
    });
    of_row.collect()
}

fn array(column: TakenColumn, kind: ColumnType) -> Result<ArrayRef, ArrowError> {
    let TakenColumn { values, rows, .. } = column;
    let levels = rows.levels();
    let nulls = NullBuffer::from_iter(levels.iter().map(|level| *level != 0));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    Ok(match (values, kind) {
        (ColumnValues::Int32(values), _) => {
            let values = ScalarBuffer::from(spread(&values, &levels));
            Arc::new(Int32Array::try_new(values, nulls)?)
        }
        (ColumnValues::Int64(values), ColumnType::UInt64) => {
            let values = spread(&values, &levels).into_iter().map(i64::cast_unsigned);
            Arc::new(UInt64Array::try_new(values.collect(), nulls)?)
        }
        (ColumnValues::Int64(values), _) => {
            let values = ScalarBuffer::from(spread(&values, &levels));
            Arc::new(Int64Array::try_new(values, nulls)?)
        }
        (ColumnValues::Float64(values), _) => {
            let values = ScalarBuffer::from(spread(&values, &levels));
            Arc::new(Float64Array::try_new(values, nulls)?)
        }
        (ColumnValues::Bool(values), _) => {
            let values = spread(&values, &levels);
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
        (ColumnValues::Bytes(BytesList { bytes, ends }), kind) => {
            let offsets = offsets(&ends, &levels)?;
            let bytes = Buffer::from_vec(bytes);
            match kind {
                ColumnType::Text => Arc::new(StringArray::try_new(offsets, bytes, nulls)?),
                _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?),
            }
        }
    })
}

/// Where the bytes of each row begin and end.
fn offsets(ends: &[usize], levels: &[i16]) -> Result<OffsetBuffer<i32>, ArrowError> {
    let too_large = |_| ArrowError::OffsetOverflowError(ends.last().copied().unwrap_or(0));
    let mut ends = ends.iter();
    let mut at = 0;
    let mut offsets = vec![0];
    for level in levels {
        if *level != 0 {
            at = ends
                .next()
                .map_or(Ok(at), |end| i32::try_from(*end))
                .map_err(too_large)?;
        }
        offsets.push(at);
    }
    Ok(OffsetBuffer::new(offsets.into()))
}
