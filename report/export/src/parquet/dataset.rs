//! The rows of a trace as a dataset.

use std::io;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_trace::session::TraceSession;

use crate::dataset_table::DatasetTable;
use crate::parquet::event_tables::{EventRow, EventTables, ProcessCells, write_empty};
use crate::parquet::fact_tables;
use crate::parquet::facts::DatasetFacts;
use crate::parquet::span_tables::{PairTable, SpanCells};
use crate::parquet::stack_table::StackRows;
use crate::parquet::table::ParquetTable;
use crate::redaction::RedactedArguments;

/// Bytes of rows in memory, of all tables.
const MAX_BYTES: usize = 64 << 20;

/// Writes a dataset.
pub(crate) struct ParquetDataset<'a> {
    session: &'a TraceSession,
    facts: DatasetFacts,
    events: EventTables,
    /// By pair.
    spans: Vec<PairTable>,
    stacks: StackRows,
    process: ProcessCells<'a>,
    /// Bytes of rows in memory.
    bytes: isize,
}

impl<'a> ParquetDataset<'a> {
    pub(crate) fn new(
        session: &'a TraceSession,
        walk: &RowWalk<'_>,
        facts: DatasetFacts,
        redacted: &RedactedArguments,
    ) -> io::Result<Self> {
        let asked = |event: usize| walk.has_event(event);
        Ok(Self {
            session,
            events: EventTables::new(session, asked, &facts, redacted)?,
            spans: PairTable::all(session, &walk.pairs, &facts, redacted)?,
            stacks: StackRows::new(&facts)?,
            process: ProcessCells::default(),
            facts,
            bytes: 0,
        })
    }

    /// Notes by how much the memory has changed. If it is too much, the rows of the greatest table are written.
    fn note(&mut self, change: isize) -> io::Result<()> {
        self.bytes += change;
        while self.bytes > MAX_BYTES.cast_signed() {
            let events = self.events.tables.iter_mut().map(|probe| &mut probe.table);
            let spans = self.spans.iter_mut().map(|pair| &mut pair.table);
            let Some(greatest) = events.chain(spans).max_by_key(|table| table.memory()) else {
                return Ok(());
            };
            let memory = greatest.memory();
            greatest.flush()?;
            self.bytes -= memory.cast_signed();
            if memory == 0 {
                self.bytes = 0;
            }
        }
        Ok(())
    }

    /// Writes what is left, and the tables of facts.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let events = self.events.tables.iter_mut().map(|probe| &mut probe.table);
        let spans = self.spans.iter_mut().map(|pair| &mut pair.table);
        events.chain(spans).try_for_each(ParquetTable::finish)?;
        let is_empty = |table: &ParquetTable| table.total == 0;
        if (self.events.tables.iter()).all(|probe| is_empty(&probe.table)) {
            write_empty(&self.facts, &DatasetTable::EVENTS, "probe")?;
        }
        if self.spans.iter().all(|pair| is_empty(&pair.table)) {
            write_empty(&self.facts, &DatasetTable::SPANS, "span")?;
        }
        self.stacks.table.finish_always()?;
        fact_tables::processes(self.session, &self.facts)?;
        fact_tables::losses(self.session, &self.facts, &self.events.tables)?;
        fact_tables::columns(&self.facts, &self.events.tables, &self.spans)?;
        fact_tables::meta(self.session, &self.facts)
    }
}

impl RowSink for ParquetDataset<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        let stack = self.stacks.id(hit.stack, self.session)?;
        let row = EventRow {
            hit,
            side,
            stack,
            process: self.process.values(self.session, &hit.row.process),
        };
        let change = self.events.put(self.session, &self.facts, row)?;
        self.note(change)
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let mut of_span = SpanCells {
            begin_stack: self.stacks.id(span.begin.stack, self.session)?,
            end_stack: None,
            process: (self.process).values(self.session, &span.begin.row.process),
        };
        if let Some(end) = span.end {
            of_span.end_stack = self.stacks.id(end.hit.stack, self.session)?;
        }
        let Some(pair) = self.spans.get_mut(span.pair) else {
            return Ok(());
        };
        let events = &self.events.events;
        let change = pair.put(self.session, &self.facts, events, span, of_span)?;
        self.note(change)
    }
}
