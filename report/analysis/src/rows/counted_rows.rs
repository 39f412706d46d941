//! Counting the rows that a sink takes, without short spans.

use std::io;

use crate::rows::hit_row::RowHit;
use crate::rows::row_sink::{RowSide, RowSink, SpanRow};

/// Hands rows to a sink, and counts them.
pub(crate) struct CountedRows<'a> {
    pub(crate) sink: &'a mut dyn RowSink,
    /// Rows that the sink took.
    pub(crate) rows: u64,
    /// Spans that ended and are shorter.
    pub(crate) shorter: u64,
    /// The duration of the shortest spans that it takes, ns. If it is more than 0, spans without an end are left out, too.
    pub(crate) least: u64,
}

impl<'a> CountedRows<'a> {
    /// Counts from 0.
    pub(crate) fn new(sink: &'a mut dyn RowSink, least: u64) -> Self {
        Self {
            sink,
            rows: 0,
            shorter: 0,
            least,
        }
    }
}

impl RowSink for CountedRows<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        self.rows += 1;
        self.sink.event(hit, side)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        if self.least > 0 && span.end.is_none_or(|end| end.duration < self.least) {
            self.shorter += u64::from(span.end.is_some());
            return Ok(());
        }
        self.rows += 1;
        self.sink.span(span)
    }
}
