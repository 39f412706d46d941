//! The tables `events`: one for each probe.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::rows::hit_row::{HitRow, RowHit};
use usdtrec_analysis::rows::row_sink::RowSide;
use usdtrec_format::perf::SampleType;
use usdtrec_trace::fields::process_fields;
use usdtrec_trace::process::process_field::{ProcessFacts, ProcessValue};
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name;

use crate::dataset_table::DatasetTable;
use crate::frame_file::path_text;
use crate::parquet::argument::TableArgument;
use crate::parquet::arguments::{ArgumentColumns, DescribedColumn};
use crate::parquet::column::{BatchColumn, ColumnCell, ColumnSpec, put};
use crate::parquet::facts::DatasetFacts;
use crate::parquet::names::folder_name;
use crate::parquet::table::{ParquetTable, TablePlace};
use crate::redaction::RedactedArguments;
use crate::thread_names::name;

/// A table of a probe.
pub(crate) struct ProbeTable {
    /// Name of the event as `script` prints it.
    pub(crate) event: String,
    pub(crate) table: ParquetTable,
    pub(crate) columns: Vec<DescribedColumn>,
}

/// What is the same for all hits of an event.
pub(crate) struct EventFacts {
    /// Its table among all.
    table: Option<usize>,
    pub(crate) arguments: Vec<TableArgument>,
    has_time: bool,
    /// The file with the probe.
    file: Option<String>,
}

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
        process: &ProcessFacts,
    ) -> &[Option<ProcessValue<'s>>] {
        if self.process.as_ref() != Some(process) {
            self.process = Some(*process);
            let values =
                process_fields().map(|(_, field)| session.process_value(field, process).ok());
            self.values.clear();
            self.values.extend(values);
        }
        &self.values
    }
}

/// The cells of the fields about a process.
pub(crate) fn process_cells<'a>(
    values: &'a [Option<ProcessValue<'a>>],
) -> impl Iterator<Item = ColumnCell<'a>> {
    values.iter().map(|value| value.as_ref().into())
}

/// A hit, the id of its stack, and the fields about its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRow<'a> {
    pub(crate) hit: RowHit<'a>,
    pub(crate) side: RowSide,
    pub(crate) stack: Option<i64>,
    pub(crate) process: &'a [Option<ProcessValue<'a>>],
}

/// The tables of all probes.
pub(crate) struct EventTables {
    pub(crate) tables: Vec<ProbeTable>,
    pub(crate) events: Vec<EventFacts>,
}

/// Provider and name of what is called `PROVIDER:NAME`.
pub(crate) fn provider_and_name(name: &str) -> (Option<&str>, &str) {
    match short_name(name).split_once(':') {
        Some((provider, name)) => (Some(provider), name),
        None => (None, short_name(name)),
    }
}

/// Where a table of a probe or span is. `taken` says how many tables a folder has: different names may have the same folder.
pub(crate) fn place_of(
    facts: &DatasetFacts,
    table: &str,
    key: &str,
    full_name: &str,
    taken: &mut HashMap<std::path::PathBuf, usize>,
) -> TablePlace {
    let (provider, bare) = provider_and_name(full_name);
    let TablePlace { folder, mut stem } = facts.place(table);
    let folder = folder.join(folder_name("provider", provider));
    let folder = folder.join(folder_name(key, Some(bare)));
    let number = taken.entry(folder.clone()).or_insert(0);
    if *number > 0 {
        stem.push_str(&format!("-{number}"));
        stem.push('x');
    }
    *number += 1;
    TablePlace { folder, stem }
}

impl EventFacts {
    /// The facts of all events.
    pub(crate) fn all(session: &TraceSession) -> Vec<Self> {
        let events = 0..session.events().events.len();
        events.map(|at| Self::new(session, at)).collect()
    }

    fn new(session: &TraceSession, at: usize) -> Self {
        let event = session.events().events.get(at);
        let definitions = session.info().definitions.as_ref();
        let file = definitions.and_then(|all| {
            let probe = all.probes.get(event?.probe?)?;
            all.files.get(probe.file)
        });
        Self {
            table: None,
            arguments: Vec::new(),
            has_time: event.is_some_and(|event| event.attr.sample_type.has(SampleType::TIME)),
            file: file.map(|file| path_text(&file.path).into_owned()),
        }
    }

    /// Puts a hit into the columns of a table.
    #[inline]
    pub(crate) fn put(
        &self,
        columns: &mut [BatchColumn],
        session: &TraceSession,
        facts: &DatasetFacts,
        event: EventRow<'_>,
    ) {
        let EventRow {
            hit,
            side,
            stack,
            process,
        } = event;
        let RowHit { row, values, .. } = hit;
        let time = self.time(row);
        let of_hit: [ColumnCell<'_>; 6] = [
            time.and_then(|time| facts.wall(time)).into(),
            ColumnCell::count(time),
            row.cpu.map(i64::from).into(),
            row.pid.into(),
            row.tid.into(),
            row.comm.map(|id| name(session, id)).into(),
        ];
        let others: [ColumnCell<'_>; 4] = [
            self.file.as_deref().into(),
            (side == RowSide::NoBegin).into(),
            stack.into(),
            facts.trace_id.into(),
        ];
        let process = process_cells(process);
        put(columns, of_hit.into_iter().chain(process).chain(others));
        for argument in &self.arguments {
            if let Some(value) = values.get(argument.place) {
                argument.put(columns, value);
            }
        }
    }

    /// The time of a hit, if its samples have one.
    pub(crate) fn time(&self, row: &HitRow) -> Option<u64> {
        self.has_time.then_some(row.time)
    }
}

/// Writes a file of a table without rows: readers of the dataset find the columns.
pub(crate) fn write_empty(facts: &DatasetFacts, table: &DatasetTable, key: &str) -> io::Result<()> {
    let place = place_of(facts, table.name, key, "", &mut HashMap::default());
    let metadata = facts.metadata(table.name);
    ParquetTable::new(place, &ColumnSpec::of_table(table), &metadata)?.finish_always()
}

impl EventTables {
    pub(crate) fn new(
        session: &TraceSession,
        asked: impl Fn(usize) -> bool,
        facts: &DatasetFacts,
        redacted: &RedactedArguments,
    ) -> io::Result<Self> {
        let mut all = Self {
            tables: Vec::new(),
            events: EventFacts::all(session),
        };
        let mut taken = HashMap::default();
        for row in Rows::new(session, asked).rows {
            let ArgumentColumns {
                columns,
                specs,
                mut of_event,
            } = ArgumentColumns::of_events(session, &row.events, redacted);
            let mut metadata = facts.metadata("events");
            metadata.push(("usdtrec.event", row.name.clone()));
            let place = place_of(facts, "events", "probe", &row.name, &mut taken);
            for &event in &row.events {
                if let Some(facts) = all.events.get_mut(event) {
                    facts.table = Some(all.tables.len());
                    facts.arguments = of_event.remove(&event).unwrap_or_default();
                }
            }
            all.tables.push(ProbeTable {
                table: ParquetTable::new(place, &specs, &metadata)?,
                event: row.name,
                columns,
            });
        }
        Ok(all)
    }

    /// Puts a hit. Gives by how much the memory has changed, bytes.
    #[inline]
    pub(crate) fn put(
        &mut self,
        session: &TraceSession,
        facts: &DatasetFacts,
        row: EventRow<'_>,
    ) -> io::Result<isize> {
        let Some(event) = self.events.get(row.hit.row.event) else {
            return Ok(0);
        };
        let Some(probe) = event.table.and_then(|table| self.tables.get_mut(table)) else {
            return Ok(0);
        };
        event.put(probe.table.row(), session, facts, row);
        probe.table.end_row()
    }
}
