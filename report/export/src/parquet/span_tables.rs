//! The tables `spans`: one for each pair of probes.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;

use crate::dataset_table::DatasetTable;
use crate::parquet::argument::TableArgument;
use crate::parquet::arguments::{ArgumentColumns, DescribedColumn};
use crate::parquet::column::BatchColumn;
use crate::parquet::column_spec::ColumnSpec;
use crate::parquet::event_tables::{EventFacts, place_of};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::names::ColumnNames;
use crate::parquet::row_cells::RowCells;
use crate::parquet::table::ParquetTable;
use crate::redaction::RedactedArguments;
use crate::thread_names::name;

/// Columns of every span.
pub(crate) const SPAN_COLUMNS: usize = DatasetTable::SPANS.columns.len();

/// A table of a pair of probes.
pub(crate) struct PairTable {
    /// Name of the spans as `report --span` prints it.
    pub(crate) name: String,
    pub(crate) table: ParquetTable,
    pub(crate) columns: Vec<DescribedColumn>,
    arguments: SpanArguments,
}

/// By event, the arguments of both sides.
pub(crate) struct SpanArguments {
    pub(crate) begin: HashMap<usize, Vec<TableArgument>>,
    pub(crate) end: HashMap<usize, Vec<TableArgument>>,
}

/// The ids of the stacks of both sides, and the fields about the process that began the span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanCells<'a> {
    pub(crate) begin_stack: Option<i64>,
    pub(crate) end_stack: Option<i64>,
    pub(crate) process: &'a [Option<ProcessValue<'a>>],
}

impl PairTable {
    /// Writes a file without rows: readers of the dataset find the columns.
    pub(crate) fn write_empty(facts: &DatasetFacts) -> io::Result<()> {
        let place = place_of(facts, "spans", "span", "", &mut HashMap::default());
        let metadata = facts.metadata("spans");
        let specs = ColumnSpec::of_table(&DatasetTable::SPANS);
        ParquetTable::new(place, &specs, &metadata)?.finish_always()
    }

    pub(crate) fn all(
        session: &TraceSession,
        pairs: &[Pair],
        facts: &DatasetFacts,
        redacted: &RedactedArguments,
    ) -> io::Result<Vec<Self>> {
        let mut taken = HashMap::default();
        let mut all = Vec::new();
        for pair in pairs {
            let fixed = ColumnSpec::of_table(&DatasetTable::SPANS);
            let mut names = ColumnNames::new(fixed.iter().map(|spec| &*spec.name));
            let mut of = |events: &[usize], prefix, first| {
                ArgumentColumns::new(session, events, redacted, prefix, &mut names, first)
            };
            let begin = of(&pair.starts, "begin_", SPAN_COLUMNS);
            let end = of(&pair.dones, "end_", SPAN_COLUMNS + begin.specs.len());
            let specs = fixed.into_iter().chain(begin.specs).chain(end.specs);
            let specs: Vec<_> = specs.collect();
            let mut metadata = facts.metadata("spans");
            metadata.push(("usdtrec.span", pair.name.clone()));
            let place = place_of(facts, "spans", "span", &pair.name, &mut taken);
            all.push(Self {
                name: pair.name.clone(),
                table: ParquetTable::new(place, &specs, &metadata)?,
                columns: begin.columns.into_iter().chain(end.columns).collect(),
                arguments: SpanArguments {
                    begin: begin.of_event,
                    end: end.of_event,
                },
            });
        }
        Ok(all)
    }

    /// Puts a span. Gives by how much the memory has changed, bytes.
    pub(crate) fn put(
        &mut self,
        session: &TraceSession,
        facts: &DatasetFacts,
        events: &[EventFacts],
        span: SpanRow<'_>,
        of_span: SpanCells<'_>,
    ) -> io::Result<isize> {
        let columns = self.table.row();
        put_facts(columns, session, facts, events, span, of_span);
        self.arguments.put(columns, span);
        self.table.end_row()
    }
}

/// Puts what every span has into the columns of a table.
pub(crate) fn put_facts(
    columns: &mut [BatchColumn],
    session: &TraceSession,
    facts: &DatasetFacts,
    events: &[EventFacts],
    span: SpanRow<'_>,
    of_span: SpanCells<'_>,
) {
    let begin = span.begin.row;
    let end = span.end.map(|end| end.hit.row);
    let of_begin = events.get(begin.event);
    let begin_time = of_begin.and_then(|event| event.time(begin));
    let end_time = end.and_then(|end| events.get(end.event)?.time(end));
    let mut cells = RowCells::new(columns);
    cells.int64(begin_time.and_then(|time| facts.wall(time)));
    cells.int64(end_time.and_then(|time| facts.wall(time)));
    cells.count(begin_time);
    cells.count(end_time);
    cells.count(span.end.map(|end| end.duration));
    cells.count(span.end.map(|end| end.own));
    cells.text(Some(span.fate.word()));
    cells.int32(Some(begin.pid));
    cells.int32(Some(begin.tid));
    cells.text(begin.comm.map(|id| name(session, id)));
    cells.process_fields(of_span.process);
    cells.int32(end.map(|end| end.pid));
    cells.int32(end.map(|end| end.tid));
    cells.int64(begin.cpu.map(i64::from));
    cells.int64(end.and_then(|end| end.cpu.map(i64::from)));
    cells.int64(of_span.begin_stack);
    cells.int64(of_span.end_stack);
    cells.int64(Some(facts.trace_id));
}

impl SpanArguments {
    /// Puts the arguments of both sides into the columns of a table.
    pub(crate) fn put(&self, columns: &mut [BatchColumn], span: SpanRow<'_>) {
        let sides = [
            (&self.begin, Some(span.begin)),
            (&self.end, span.end.map(|end| end.hit)),
        ];
        for (arguments, hit) in sides {
            let Some(hit) = hit else {
                continue;
            };
            for argument in arguments.get(&hit.row.event).into_iter().flatten() {
                if let Some(value) = hit.values.get(argument.place) {
                    argument.put(columns, value);
                }
            }
        }
    }
}
