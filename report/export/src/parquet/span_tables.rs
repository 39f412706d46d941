//! The tables `spans`: one for each pair of probes.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_analysis::spans::spent_time::SpentTime;
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;

use crate::dataset_table::DatasetTable;
use crate::parquet::argument::TableArgument;
use crate::parquet::arguments::{ArgumentColumns, DescribedColumn};
use crate::parquet::column::{BatchColumn, ColumnCell, ColumnSpec, put};
use crate::parquet::event_tables::{EventFacts, place_of, process_cells};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::names::ColumnNames;
use crate::parquet::table::ParquetTable;
use crate::redaction::RedactedArguments;
use crate::thread_names::name;

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
    begin: HashMap<usize, Vec<TableArgument>>,
    end: HashMap<usize, Vec<TableArgument>>,
}

/// The columns of a table of spans.
pub(crate) struct SpanColumns {
    pub(crate) specs: Vec<ColumnSpec>,
    columns: Vec<DescribedColumn>,
    pub(crate) arguments: SpanArguments,
}

impl SpanColumns {
    /// The columns of the spans that these events begin and end.
    pub(crate) fn new(
        session: &TraceSession,
        starts: &[usize],
        dones: &[usize],
        redacted: &RedactedArguments,
    ) -> Self {
        let mut specs = ColumnSpec::of_table(&DatasetTable::SPANS);
        let mut names = ColumnNames::new(&specs);
        let mut of = |events: &[usize], prefix| {
            let first = specs.len();
            let of = ArgumentColumns::new(session, events, redacted, prefix, &mut names, first);
            specs.extend(of.specs);
            (of.columns, of.of_event)
        };
        let (mut columns, begin) = of(starts, "begin_");
        let (others, end) = of(dones, "end_");
        columns.extend(others);
        Self {
            specs,
            columns,
            arguments: SpanArguments { begin, end },
        }
    }
}

/// The ids of the stacks of both sides, and the fields about the process that began the span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanCells<'a> {
    pub(crate) begin_stack: Option<i64>,
    pub(crate) end_stack: Option<i64>,
    pub(crate) process: &'a [Option<ProcessValue<'a>>],
}

impl PairTable {
    pub(crate) fn all(
        session: &TraceSession,
        pairs: &[Pair],
        facts: &DatasetFacts,
        redacted: &RedactedArguments,
    ) -> io::Result<Vec<Self>> {
        let mut taken = HashMap::default();
        let mut all = Vec::new();
        for pair in pairs {
            let of_pair = SpanColumns::new(session, &pair.starts, &pair.dones, redacted);
            let mut metadata = facts.metadata("spans");
            metadata.push(("usdtrec.span", pair.name.clone()));
            let place = place_of(facts, "spans", "span", &pair.name, &mut taken);
            all.push(Self {
                name: pair.name.clone(),
                table: ParquetTable::new(place, &of_pair.specs, &metadata)?,
                columns: of_pair.columns,
                arguments: of_pair.arguments,
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
    let times: [ColumnCell<'_>; 6] = [
        begin_time.and_then(|time| facts.wall(time)).into(),
        end_time.and_then(|time| facts.wall(time)).into(),
        ColumnCell::count(begin_time),
        ColumnCell::count(end_time),
        ColumnCell::count(span.end.map(|end| end.duration)),
        ColumnCell::count(span.end.map(|end| end.own)),
    ];
    let parts = SpentTime::named(span.end.map(|end| end.spent));
    let parts = parts.map(|(_, ns)| ColumnCell::count(ns));
    let of_begin: [ColumnCell<'_>; 4] = [
        span.fate.word().into(),
        begin.pid.into(),
        begin.tid.into(),
        begin.comm.map(|id| name(session, id)).into(),
    ];
    let others: [ColumnCell<'_>; 7] = [
        end.map(|end| end.pid).into(),
        end.map(|end| end.tid).into(),
        begin.cpu.map(i64::from).into(),
        end.and_then(|end| end.cpu.map(i64::from)).into(),
        of_span.begin_stack.into(),
        of_span.end_stack.into(),
        facts.trace_id.into(),
    ];
    let process = process_cells(of_span.process);
    let first = times.into_iter().chain(parts).chain(of_begin);
    put(columns, first.chain(process).chain(others));
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
