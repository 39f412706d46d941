//! Events as record batches.

use std::io;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_trace::session::TraceSession;

use crate::arrow::arrow_table::ArrowTable;
use crate::dataset_table::{ColumnType, DatasetTable};
use crate::parquet::arguments::ArgumentColumns;
use crate::parquet::column_spec::ColumnSpec;
use crate::parquet::event_tables::{EVENT_COLUMNS, EventFacts, EventRow, provider_and_name};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::names::ColumnNames;
use crate::parquet::row_cells::{ProcessCells, RowCells};
use crate::parquet::stack_table::StackIds;
use crate::redaction::RedactedArguments;

/// Columns that Parquet has in folders.
const NAMES: usize = 2;

/// The table of all selected events.
pub(crate) struct EventFormat {
    pub(crate) specs: Vec<ColumnSpec>,
    events: Vec<EventFacts>,
}

/// Takes events.
pub(crate) struct EventBatches<'e> {
    pub(crate) session: &'e TraceSession,
    pub(crate) facts: &'e DatasetFacts,
    pub(crate) format: &'e EventFormat,
    pub(crate) stacks: StackIds,
    pub(crate) process: ProcessCells<'e>,
    pub(crate) table: ArrowTable<'e>,
}

impl EventFormat {
    pub(crate) fn new(
        session: &TraceSession,
        walk: &RowWalk<'_>,
        redacted: &RedactedArguments,
    ) -> Self {
        let all = session.events().events.iter().enumerate();
        let asked = all.filter(|(at, event)| walk.is_row(*at) && !event.is_dummy());
        let asked: Vec<usize> = asked.map(|(at, _)| at).collect();
        let fixed = ColumnSpec::of_table(&DatasetTable::EVENTS);
        let mut names = ColumnNames::new(fixed.iter().map(|spec| &*spec.name));
        let ArgumentColumns {
            specs,
            mut of_event,
            ..
        } = ArgumentColumns::new(session, &asked, redacted, "", &mut names, EVENT_COLUMNS);
        let of_folders = ["provider", "probe"];
        let of_folders = of_folders.map(|name| ColumnSpec::new(name, ColumnType::Text));
        let events = (0..session.events().events.len()).map(|at| {
            let mut facts = EventFacts::new(session, at);
            facts.arguments = of_event.remove(&at).unwrap_or_default();
            facts
        });
        Self {
            events: events.collect(),
            specs: of_folders.into_iter().chain(fixed).chain(specs).collect(),
        }
    }
}

impl RowSink for EventBatches<'_> {
    fn event(&mut self, hit: RowHit<'_>, side: RowSide) -> io::Result<()> {
        let event = self.session.events().events.get(hit.row.event);
        let (Some(event), Some(facts)) = (event, self.format.events.get(hit.row.event)) else {
            return Ok(());
        };
        let stack = self.stacks.id(hit.stack, self.session);
        let stack = stack.map(|stack| stack.id);
        let (provider, probe) = provider_and_name(&event.name);
        let (names, columns) = self.table.row().split_at_mut(NAMES);
        let mut cells = RowCells::new(names);
        cells.text(provider);
        cells.text(Some(probe));
        let row = EventRow {
            hit,
            side,
            stack,
            process: self.process.values(self.session, hit.row.process),
        };
        facts.put(columns, self.session, self.facts, row);
        self.table.end_row()
    }

    fn span(&mut self, _: SpanRow<'_>) -> io::Result<()> {
        Ok(())
    }
}
