//! Reading a trace as record batches.

use std::ops::ControlFlow;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use usdtrec_analysis::rows::row_walk::{RowQuestion, RowWalk};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::session::TraceSession;

use crate::arrow::arrow_table::{ArrowTable, EachBatch};
use crate::arrow::row_batches::{EventBatches, EventFormat, SpanBatches, SpanFormat, StackBatches};
use crate::dataset_table::DatasetTable;
use crate::parquet::column::ColumnSpec;
use crate::parquet::event_tables::ProcessCells;
use crate::parquet::facts::DatasetFacts;
use crate::parquet::stack_table::StackIds;
use crate::redaction::{RedactedArguments, Redaction};

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowRows {
    /// Events: the table `events` of a dataset.
    Events,
    /// Spans: the table `spans`.
    Spans,
    /// Frames of the different stacks of events and spans: the table `stacks`. Needs [`RowQuestion::stacks`].
    Stacks,
}

/// The columns of a table.
enum TableFormat {
    Events(EventFormat),
    Spans(SpanFormat),
    Stacks(Vec<ColumnSpec>),
}

/// Reads the selected events, spans or stacks of a trace as record batches.
pub struct ArrowReader<'s> {
    session: &'s TraceSession,
    walk: RowWalk<'s>,
    facts: DatasetFacts,
    format: TableFormat,
}

impl<'s> ArrowReader<'s> {
    /// A reader of a trace; nothing is read yet.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what is requested.
    pub fn new(
        session: &'s TraceSession,
        selection: &EventSelection,
        question: &RowQuestion,
        rows: ArrowRows,
    ) -> Result<Self, ReportError> {
        let walk = RowWalk::new(session, selection, question)?;
        let redacted = RedactedArguments::new(session, &Redaction::default())?;
        let format = match rows {
            ArrowRows::Events => TableFormat::Events(EventFormat::new(session, &walk, &redacted)),
            ArrowRows::Spans => {
                TableFormat::Spans(SpanFormat::new(session, &walk.pairs, &redacted))
            }
            ArrowRows::Stacks => TableFormat::Stacks(ColumnSpec::of_table(&DatasetTable::STACKS)),
        };
        Ok(Self {
            session,
            walk,
            facts: DatasetFacts::new(session, Path::new("")),
            format,
        })
    }

    /// The columns of all batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        ColumnSpec::schema(match &self.format {
            TableFormat::Events(format) => &format.specs,
            TableFormat::Spans(format) => &format.specs,
            TableFormat::Stacks(specs) => specs,
        })
    }

    /// Calls `each` with each batch until it breaks, on this thread. Gives what is wrong with the trace; after a break, what was known of it when the
    /// trace was opened.
    ///
    /// # Errors
    /// [`ReportError::Write`] if a string is too long for a batch.
    pub fn read(
        &self,
        mut each: impl FnMut(RecordBatch) -> ControlFlow<()>,
    ) -> Result<Notices, ReportError> {
        let mut is_ended = false;
        let mut noting = |batch| {
            let flow = each(batch);
            is_ended |= flow.is_break();
            flow
        };
        let walked = self.run(&mut noting);
        match is_ended {
            true => Ok(Notices::new(self.session)),
            false => walked,
        }
    }

    fn run<'e>(&'e self, each: &'e mut EachBatch<'e>) -> Result<Notices, ReportError> {
        let mut notices = Notices::new(self.session);
        let (session, facts) = (self.session, &self.facts);
        let (stacks, process) = (StackIds::default(), ProcessCells::default());
        match &self.format {
            TableFormat::Events(format) => {
                let mut sink = EventBatches {
                    session,
                    facts,
                    format,
                    stacks,
                    process,
                    table: ArrowTable::new(&format.specs, each),
                };
                self.walk.run(&mut sink, &mut notices)?;
                sink.table.flush()?;
            }
            TableFormat::Spans(format) => {
                let mut sink = SpanBatches {
                    session,
                    facts,
                    pairs: &self.walk.pairs,
                    format,
                    stacks,
                    process,
                    table: ArrowTable::new(&format.specs, each),
                };
                self.walk.run(&mut sink, &mut notices)?;
                sink.table.flush()?;
            }
            TableFormat::Stacks(specs) => {
                let mut sink = StackBatches {
                    session,
                    facts,
                    stacks,
                    table: ArrowTable::new(specs, each),
                };
                self.walk.run(&mut sink, &mut notices)?;
                sink.table.flush()?;
            }
        }
        Ok(notices)
    }
}
