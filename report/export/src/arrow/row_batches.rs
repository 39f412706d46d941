//! Events, spans and stacks as record batches.

use std::io;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::rows::row_walk::RowWalk;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;

use crate::arrow::arrow_table::ArrowTable;
use crate::dataset_table::ColumnType;
use crate::parquet::arguments::ArgumentColumns;
use crate::parquet::column::{ColumnSpec, put};
use crate::parquet::event_tables::{EventFacts, EventRow, ProcessCells, provider_and_name};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::span_tables::{SpanArguments, SpanCells, SpanColumns, put_facts};
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
        let ArgumentColumns {
            specs,
            mut of_event,
            ..
        } = ArgumentColumns::of_events(session, &asked, redacted);
        let of_folders = ["provider", "probe"];
        let of_folders = of_folders.map(|name| ColumnSpec::new(name, ColumnType::Text));
        let mut events = EventFacts::all(session);
        for (at, facts) in events.iter_mut().enumerate() {
            facts.arguments = of_event.remove(&at).unwrap_or_default();
        }
        Self {
            events,
            specs: of_folders.into_iter().chain(specs).collect(),
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
        put(names, [provider.into(), probe.into()]);
        let row = EventRow {
            hit,
            side,
            stack,
            process: self.process.values(self.session, &hit.row.process),
        };
        facts.put(columns, self.session, self.facts, row);
        self.table.end_row()
    }

    fn span(&mut self, _: SpanRow<'_>) -> io::Result<()> {
        Ok(())
    }
}

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
        let events = |side: fn(&Pair) -> &Vec<usize>| {
            let mut events: Vec<usize> = pairs.iter().flat_map(side).copied().collect();
            events.sort_unstable();
            events.dedup();
            events
        };
        let (starts, dones) = (events(|pair| &pair.starts), events(|pair| &pair.dones));
        let SpanColumns {
            specs, arguments, ..
        } = SpanColumns::new(session, &starts, &dones, redacted);
        let of_folders = ["provider", "span"];
        let of_folders = of_folders.map(|name| ColumnSpec::new(name, ColumnType::Text));
        Self {
            specs: of_folders.into_iter().chain(specs).collect(),
            events: EventFacts::all(session),
            arguments,
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
            process: (self.process).values(self.session, &span.begin.row.process),
        };
        let (provider, name) = provider_and_name(&pair.name);
        let (names, columns) = self.table.row().split_at_mut(NAMES);
        put(names, [provider.into(), name.into()]);
        let SpanFormat { events, .. } = self.format;
        put_facts(columns, self.session, self.facts, events, span, of_span);
        self.format.arguments.put(columns, span);
        self.table.end_row()
    }
}

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
            let row = frame.row(self.facts.trace_id, known.id, depth);
            put(self.table.row(), row);
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
