//! The cells of a row.

use std::slice::IterMut;

use usdtrec_trace::fields::process_fields;
use usdtrec_trace::process::Processes;
use usdtrec_trace::process::process_field::{ProcessFacts, ProcessValue};

use crate::parquet::column::BatchColumn;

/// The columns of a row, one after the other.
pub(crate) struct RowCells<'c> {
    columns: IterMut<'c, BatchColumn>,
}

impl<'c> RowCells<'c> {
    pub(crate) fn new(columns: &'c mut [BatchColumn]) -> Self {
        Self {
            columns: columns.iter_mut(),
        }
    }

    /// The fields about a process, which have a column each.
    pub(crate) fn process_fields(&mut self, processes: &Processes, process: ProcessFacts) {
        for (_, field) in process_fields() {
            let value = field.get(processes, process);
            match field.is_number {
                true => self.count(value.and_then(ProcessValue::number)),
                false => self.text(value.as_ref().and_then(ProcessValue::text)),
            }
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
