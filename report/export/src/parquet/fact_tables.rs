//! Tables that are written at the end: `processes`, `losses`, `columns` and `meta`.

use std::io;

use foldhash::HashMap;
use usdtrec_analysis::losses::Losses;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::losses::{doubt, source_word};

use crate::dataset_table::DatasetTable;
use crate::parquet::arguments::DescribedColumn;
use crate::parquet::column::ColumnCell;
use crate::parquet::event_tables::{ProbeTable, provider_and_name};
use crate::parquet::facts::{DatasetFacts, SCHEMA_VERSION};
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
        table.put_row([
            facts.trace_id.into(),
            of.tid.into(),
            of.comm.name.map(|id| name(session, id)).into(),
            begin.and_then(|time| facts.wall(time)).into(),
            end.and_then(|time| facts.wall(time)).into(),
            ColumnCell::count(begin),
            ColumnCell::count(end),
        ])?;
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
        table.put_row([
            facts.trace_id.into(),
            event.into(),
            names.and_then(|(provider, _)| provider).into(),
            names.map(|(_, probe)| probe).into(),
            ColumnCell::count(rows),
            ColumnCell::count(losses.ledger.known(*lost)),
            losses.ledger.is_exact().into(),
            source_word(losses.ledger.source).into(),
            doubt(&losses.ledger).into(),
        ])?;
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
            table.put_row([
                facts.trace_id.into(),
                of_table.into(),
                of.into(),
                spec.name.as_str().into(),
                spec.kind.name().into(),
                argument.as_str().into(),
                unit.as_deref().filter(|_| at == 0).into(),
                description.as_deref().filter(|_| at == 0).into(),
            ])?;
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
    table.put_row([
        facts.trace_id.into(),
        SCHEMA_VERSION.into(),
        concat!("usdtrec ", env!("CARGO_PKG_VERSION")).into(),
        said(&info.version).into(),
        facts.origin.engine.as_deref().into(),
        serde_json::to_string(&info.command).ok().into(),
        said(&info.machine).into(),
        said(&info.os_release).into(),
        online.map(i64::from).into(),
        known.map(|(_, name)| *name).into(),
        ColumnCell::count(clock.map(|clock| clock.wall_ns)),
        ColumnCell::count(clock.map(|clock| clock.clock_ns)),
        first.and_then(|time| facts.wall(time)).into(),
        last.and_then(|time| facts.wall(time)).into(),
        ColumnCell::count(first),
        ColumnCell::count(last),
        facts.wall_error().map(i64::from).into(),
    ])?;
    table.finish_always()
}
