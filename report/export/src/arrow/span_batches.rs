//! Spans as record batches.

use std::io;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::session::TraceSession;

use crate::arrow::arrow_table::ArrowTable;
use crate::dataset_table::{ColumnType, DatasetTable};
use crate::parquet::arguments::ArgumentColumns;
use crate::parquet::column_spec::ColumnSpec;
use crate::parquet::event_tables::{EventFacts, provider_and_name};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::names::ColumnNames;
use crate::parquet::row_cells::{ProcessCells, RowCells};
use crate::parquet::span_tables::{SPAN_COLUMNS, SpanArguments, SpanCells, put_facts};
use crate::parquet::stack_table::StackIds;
use crate::redaction::RedactedArguments;

/// Columns that Parquet has in folders.
const NAMES: usize = 2;

/// The table of all spans.
pub(crate) struct SpanFormat {
    pub(crate) specs: Vec<ColumnSpec>,
    events: Vec<EventFacts>,
    arguments: SpanArguments,
}

/// Takes spans.
pub(crate) struct SpanBatches<'e> {
    pub(crate) session: &'e TraceSession,
    pub(crate) facts: &'e DatasetFacts,
    pub(crate) pairs: &'e [Pair],
    pub(crate) format: &'e SpanFormat,
    pub(crate) stacks: StackIds,
    pub(crate) process: ProcessCells<'e>,
    pub(crate) table: ArrowTable<'e>,
}

impl SpanFormat {
    pub(crate) fn new(
        session: &TraceSession,
        pairs: &[Pair],
        redacted: &RedactedArguments,
    ) -> Self {
        let fixed = ColumnSpec::of_table(&DatasetTable::SPANS);
        let mut names = ColumnNames::new(fixed.iter().map(|spec| &*spec.name));
        let mut of = |side: fn(&Pair) -> &Vec<usize>, prefix, first| {
            let mut events: Vec<usize> = pairs.iter().flat_map(side).copied().collect();
            events.sort_unstable();
            events.dedup();
            ArgumentColumns::new(session, &events, redacted, prefix, &mut names, first)
        };
        let begin = of(|pair| &pair.starts, "begin_", SPAN_COLUMNS);
        let end = of(|pair| &pair.dones, "end_", SPAN_COLUMNS + begin.specs.len());
        let of_folders = ["provider", "span"];
        let of_folders = of_folders.map(|name| ColumnSpec::new(name, ColumnType::Text));
        let specs = of_folders.into_iter().chain(fixed);
        let count = session.events().events.len();
        Self {
            specs: specs.chain(begin.specs).chain(end.specs).collect(),
            events: (0..count).map(|at| EventFacts::new(session, at)).collect(),
            arguments: SpanArguments {
                begin: begin.of_event,
                end: end.of_event,
            },
        }
    }
}

impl RowSink for SpanBatches<'_> {
    fn event(&mut self, _: RowHit<'_>, _: RowSide) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        let Some(pair) = self.pairs.get(span.pair) else {
            return Ok(());
        };
        let begin = self.stacks.id(span.begin.stack, self.session);
        let end = span.end.map_or(&[][..], |end| end.hit.stack);
        let end = self.stacks.id(end, self.session);
        let of_span = SpanCells {
            begin_stack: begin.map(|stack| stack.id),
            end_stack: end.map(|stack| stack.id),
            process: (self.process).values(self.session, span.begin.row.process),
        };
        let (provider, name) = provider_and_name(&pair.name);
        let (names, columns) = self.table.row().split_at_mut(NAMES);
        let mut cells = RowCells::new(names);
        cells.text(provider);
        cells.text(Some(name));
        let SpanFormat { events, .. } = self.format;
        put_facts(columns, self.session, self.facts, events, span, of_span);
        self.format.arguments.put(columns, span);
        self.table.end_row()
    }
}
