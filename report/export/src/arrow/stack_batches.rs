//! Stacks as record batches: a row for each frame of each different stack.

use std::io;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;

use crate::arrow::arrow_table::ArrowTable;
use crate::parquet::facts::DatasetFacts;
use crate::parquet::stack_table::StackIds;

/// Takes the stacks of events and spans.
pub(crate) struct StackBatches<'e> {
    pub(crate) session: &'e TraceSession,
    pub(crate) facts: &'e DatasetFacts,
    pub(crate) stacks: StackIds,
    pub(crate) table: ArrowTable<'e>,
}

impl StackBatches<'_> {
    fn put(&mut self, stack: &[StackPart]) -> io::Result<()> {
        let Some(known) = self.stacks.id(stack, self.session) else {
            return Ok(());
        };
        for (depth, frame) in (0..).zip(known.frames.iter().flatten()) {
            frame.put(self.table.row(), self.facts.trace_id, known.id, depth);
            self.table.end_row()?;
        }
        Ok(())
    }
}

impl RowSink for StackBatches<'_> {
    fn event(&mut self, hit: RowHit<'_>, _: RowSide) -> io::Result<()> {
        self.put(hit.stack)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        self.put(span.begin.stack)?;
        span.end.map_or(Ok(()), |end| self.put(end.hit.stack))
    }
}
