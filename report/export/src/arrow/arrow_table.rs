//! A table that is passed on as record batches.

use std::io;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;

use crate::parquet::batch_rows::{BatchLimits, BatchRows};
use crate::parquet::column::{BatchColumn, ColumnSpec};

/// How much a batch has.
const BATCH: BatchLimits = BatchLimits {
    rows: 1 << 16,
    bytes: 16 << 20,
};

/// Takes batches until it breaks.
pub(crate) type EachBatch<'e> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'e;

/// A table.
pub(crate) struct ArrowTable<'e> {
    rows: BatchRows,
    each: &'e mut EachBatch<'e>,
}

impl<'e> ArrowTable<'e> {
    pub(crate) fn new(specs: &[ColumnSpec], each: &'e mut EachBatch<'e>) -> Self {
        Self {
            rows: BatchRows::new(specs, BATCH),
            each,
        }
    }

    /// The columns of the next row, each of which takes one value.
    pub(crate) fn row(&mut self) -> &mut [BatchColumn] {
        self.rows.row()
    }

    /// Ends the row; columns that took no value are null. The error ends the walk.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        match self.rows.end_row() {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Passes on the rows in memory.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(batch) = self.rows.take()? else {
            return Ok(());
        };
        match (self.each)(batch) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}
