//! Tables that are written at the end: `processes`, `losses`, `columns` and `meta`.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::losses::Losses;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::losses::{doubt, source_word};

use crate::dataset_table::DatasetTable;
use crate::parquet::arguments::DescribedColumn;
use crate::parquet::event_tables::{ProbeTable, provider_and_name};
use crate::parquet::facts::{DatasetFacts, SCHEMA_VERSION};
use crate::parquet::row_cells::RowCells;
use crate::parquet::span_tables::PairTable;
use crate::thread_names::name;

/// `CLOCK_MONOTONIC` and others, by `clockid_t`.
const CLOCKS: [(u32, &str); 5] = [
    (0, "CLOCK_REALTIME"),
    (1, "CLOCK_MONOTONIC"),
    (4, "CLOCK_MONOTONIC_RAW"),
    (7, "CLOCK_BOOTTIME"),
    (11, "CLOCK_TAI"),
];

/// A string, unless it is empty.
fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// What threads were called, and when.
pub(crate) fn processes(session: &TraceSession, facts: &DatasetFacts) -> io::Result<()> {
    let mut table = facts.table(&DatasetTable::PROCESSES)?;
    for of in session.processes().comms() {
        let begin = Some(of.comm.from).filter(|time| *time > 0);
        let end = Some(of.comm.until).filter(|time| *time < u64::MAX);
        let mut cells = RowCells::new(table.row());
        cells.int64(Some(facts.trace_id));
        cells.int32(Some(of.tid));
        cells.text(of.comm.name.map(|id| name(session, id)));
        cells.int64(begin.and_then(|time| facts.wall(time)));
        cells.int64(end.and_then(|time| facts.wall(time)));
        cells.count(begin);
        cells.count(end);
        table.end_row()?;
    }
    table.finish_always()
}

/// How many events each probe has lost, with the number of those that are exported.
pub(crate) fn losses(
    session: &TraceSession,
    facts: &DatasetFacts,
    tables: &[ProbeTable],
) -> io::Result<()> {
    let mut table = facts.table(&DatasetTable::LOSSES)?;
    let rows = Rows::new(session, |_| true);
    let losses = Losses::new(session, &rows);
    let exported = tables
        .iter()
        .map(|probe| (&*probe.event, probe.table.total));
    let exported: HashMap<&str, u64> = exported.collect();
    let of_rows = rows.rows.iter().map(|row| Some(&*row.name));
    let lost = losses.rows.iter().chain([&losses.others]);
    for (event, lost) in of_rows.chain([None]).zip(lost) {
        if event.is_none() && *lost == 0 {
            continue;
        }
        let names = event.map(provider_and_name);
        let rows = event.map(|event| exported.get(event).copied().unwrap_or(0));
        let mut cells = RowCells::new(table.row());
        cells.int64(Some(facts.trace_id));
        cells.text(event);
        cells.text(names.and_then(|(provider, _)| provider));
        cells.text(names.map(|(_, probe)| probe));
        cells.count(rows);
        cells.count(losses.ledger.known(*lost));
        cells.bool(Some(losses.ledger.is_exact()));
        cells.text(Some(source_word(losses.ledger.source)));
        cells.text(doubt(&losses.ledger));
        table.end_row()?;
    }
    table.finish_always()
}

/// The columns of arguments: which argument each is, and what it counts.
pub(crate) fn columns(
    facts: &DatasetFacts,
    probes: &[ProbeTable],
    pairs: &[PairTable],
) -> io::Result<()> {
    let mut table = facts.table(&DatasetTable::COLUMNS)?;
    let of_probes = probes
        .iter()
        .flat_map(|probe| (probe.columns.iter()).map(|column| ("events", &*probe.event, column)));
    let of_pairs = pairs
        .iter()
        .flat_map(|pair| (pair.columns.iter()).map(|column| ("spans", &*pair.name, column)));
    for (of_table, of, described) in of_probes.chain(of_pairs) {
        let DescribedColumn {
            column,
            argument,
            kind,
            unit,
            description,
        } = described;
        for (at, spec) in kind.specs(column).enumerate() {
            let mut cells = RowCells::new(table.row());
            cells.int64(Some(facts.trace_id));
            cells.text(Some(of_table));
            cells.text(Some(of));
            cells.text(Some(&spec.name));
            cells.text(Some(spec.kind.name()));
            cells.text(Some(argument));
            cells.text(unit.as_deref().filter(|_| at == 0));
            cells.text(description.as_deref().filter(|_| at == 0));
            table.end_row()?;
        }
    }
    table.finish_always()
}

/// The trace as a whole: one row.
pub(crate) fn meta(session: &TraceSession, facts: &DatasetFacts) -> io::Result<()> {
    let mut table = facts.table(&DatasetTable::META)?;
    let info = session.info();
    let clock = info.clock;
    let known = clock.and_then(|clock| CLOCKS.iter().find(|(id, _)| *id == clock.id));
    let (first, last) = session.time().map(|time| (time.first, time.last)).unzip();
    let online = Some(info.cpus_online).filter(|count| *count > 0);
    let mut cells = RowCells::new(table.row());
    cells.int64(Some(facts.trace_id));
    cells.int32(Some(SCHEMA_VERSION));
    cells.text(Some(concat!("usdtrec ", env!("CARGO_PKG_VERSION"))));
    cells.text(said(&info.version));
    cells.text(facts.origin.engine.as_deref());
    cells.text(serde_json::to_string(&info.command).ok().as_deref());
    cells.text(said(&info.machine));
    cells.text(said(&info.os_release));
    cells.int64(online.map(i64::from));
    cells.text(known.map(|(_, name)| *name));
    cells.count(clock.map(|clock| clock.wall_ns));
    cells.count(clock.map(|clock| clock.clock_ns));
    cells.int64(first.and_then(|time| facts.wall(time)));
    cells.int64(last.and_then(|time| facts.wall(time)));
    cells.count(first);
    cells.count(last);
    cells.int64(facts.wall_error().map(i64::from));
    table.end_row()?;
    table.finish_always()
}
