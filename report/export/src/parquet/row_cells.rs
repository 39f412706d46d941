//! The cells of a row.

use std::slice::IterMut;

use usdtrec_trace::fields::process_fields;
use usdtrec_trace::process::process_field::{ProcessFacts, ProcessValue};
use usdtrec_trace::session::TraceSession;

use crate::parquet::column::BatchColumn;

/// The fields about the process of the latest row, which the next rows often share.
#[derive(Debug, Default)]
pub(crate) struct ProcessCells<'s> {
    process: Option<ProcessFacts>,
    values: Vec<Option<ProcessValue<'s>>>,
}

impl<'s> ProcessCells<'s> {
    /// The values of the fields about a process, in their order.
    #[inline]
    pub(crate) fn values(
        &mut self,
        session: &'s TraceSession,
        process: ProcessFacts,
    ) -> &[Option<ProcessValue<'s>>] {
        if self.process != Some(process) {
            self.process = Some(process);
            let values = process_fields().map(|(_, field)| field.get(session.processes(), process));
            self.values.clear();
            self.values.extend(values);
        }
        &self.values
    }
}

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
    #[inline]
    pub(crate) fn process_fields(&mut self, values: &[Option<ProcessValue<'_>>]) {
        // The values first: the column after the last one stays.
        for (value, column) in values.iter().zip(self.columns.by_ref()) {
            match value {
                Some(ProcessValue::Number(number)) => column.int64(i64::try_from(*number).ok()),
                Some(value) => column.text(value.text()),
                None => column.pad_one(),
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
