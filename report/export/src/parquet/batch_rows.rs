//! Rows of a table, until they are a record batch.

use std::io;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};

use crate::parquet::column::{BatchColumn, ColumnSpec};

/// Rows between two looks at what the columns take.
const LOOK: usize = 32;

/// How much a batch has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Rows, at most.
    pub(crate) rows: usize,
    /// Bytes, about.
    pub(crate) bytes: usize,
}

/// The rows that are not yet in a batch.
#[derive(Debug)]
pub(crate) struct BatchRows {
    limits: BatchLimits,
    schema: SchemaRef,
    columns: Vec<BatchColumn>,
    rows: usize,
    /// Bytes of the rows at the last look.
    size: usize,
}

impl BatchRows {
    pub(crate) fn new(specs: &[ColumnSpec], limits: BatchLimits) -> Self {
        let columns = specs.iter().map(|spec| BatchColumn::new(spec.kind));
        Self {
            limits,
            schema: ColumnSpec::schema(specs),
            columns: columns.collect(),
            rows: 0,
            size: 0,
        }
    }

    pub(crate) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns of the next row, each of which takes one value.
    #[inline]
    pub(crate) fn row(&mut self) -> &mut [BatchColumn] {
        &mut self.columns
    }

    /// Ends the row; columns that took no value are null. Gives whether the rows are to be taken now.
    #[inline]
    pub(crate) fn end_row(&mut self) -> bool {
        self.rows += 1;
        for column in &mut self.columns {
            column.pad(self.rows);
        }
        if self.rows.is_multiple_of(LOOK) {
            self.size = self.columns.iter().map(BatchColumn::size).sum();
        }
        self.rows >= self.limits.rows || self.size >= self.limits.bytes
    }

    /// Bytes of the rows at the last look.
    #[inline]
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Gives the rows away. `None` if there are none. The error is that of strings that are too long for a batch.
    pub(crate) fn take(&mut self) -> io::Result<Option<RecordBatch>> {
        if self.rows == 0 {
            return Ok(None);
        }
        if self.columns.iter().any(|column| column.is_overfull) {
            return Err(io::Error::other(ArrowError::OffsetOverflowError(self.size)));
        }
        let arrays = self.columns.iter_mut().map(BatchColumn::take).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::clone(&self.schema);
        self.rows = 0;
        self.size = 0;
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        batch.map(Some).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt64Type};

    use super::*;
    use crate::dataset_table::ColumnType;

    fn rows(limits: BatchLimits) -> BatchRows {
        let specs = [
            ColumnSpec::new("number", ColumnType::Int64),
            ColumnSpec::new("address", ColumnType::UInt64),
            ColumnSpec::new("text", ColumnType::Text),
            ColumnSpec::new("bytes", ColumnType::Binary),
            ColumnSpec::new("is", ColumnType::Bool),
        ];
        BatchRows::new(&specs, limits)
    }

    #[test]
    fn columns_without_a_value_are_null() {
        let mut rows = rows(BatchLimits {
            rows: 3,
            bytes: 1 << 20,
        });
        assert!(rows.take().unwrap().is_none());
        rows.row()[0].put((-1_i64).into());
        rows.row()[1].put(u64::MAX.into());
        assert!(!rows.end_row());
        rows.row()[2].put("t".into());
        rows.row()[3].put((&[0xff_u8][..]).into());
        assert!(!rows.end_row());
        rows.row()[4].put(true.into());
        assert!(rows.end_row(), "as many rows as a batch has");
        let batch = rows.take().unwrap().unwrap();
        let valid = batch.columns().iter().map(|column| {
            let rows = (0..3).map(|row| u8::from(column.is_valid(row)));
            rows.collect::<Vec<_>>()
        });
        let valid: Vec<_> = valid.collect();
        assert_eq!(
            valid,
            [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
        );
        assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), -1);
        let addresses = batch.column(1).as_primitive::<UInt64Type>();
        assert_eq!(addresses.value(0), u64::MAX);
        assert_eq!(batch.column(2).as_string::<i32>().value(1), "t");
        assert_eq!(batch.column(3).as_binary::<i32>().value(1), [0xff]);
        assert!(batch.column(4).as_boolean().value(2));
        assert!(rows.take().unwrap().is_none(), "they are given once");
    }

    #[test]
    fn long_strings_end_a_batch() {
        let mut rows = rows(BatchLimits {
            rows: 1 << 20,
            bytes: 1 << 20,
        });
        let text = "x".repeat(1 << 12);
        let mut count = 1;
        loop {
            rows.row()[2].put(text.as_str().into());
            if rows.end_row() {
                break;
            }
            count += 1;
        }
        assert_eq!(count, 256);
        assert_eq!(rows.take().unwrap().unwrap().num_rows(), 256);
        assert_eq!(rows.size(), 0);
    }
}
