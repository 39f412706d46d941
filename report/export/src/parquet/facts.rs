//! What is the same for all tables of a trace.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use usdtrec_analysis::origin::Origin;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::wall_times::WallTimes;

use crate::dataset_table::DatasetTable;
use crate::parquet::column::ColumnSpec;
use crate::parquet::names::folder_name;
use crate::parquet::table::{ParquetTable, TablePlace};

/// Version of the tables: it rises when a column gets another meaning or is removed.
pub(crate) const SCHEMA_VERSION: i32 = 1;

/// Facts of a trace.
#[derive(Debug)]
pub(crate) struct DatasetFacts {
    pub(crate) origin: Origin,
    /// Hash of where, when and how the trace was recorded.
    pub(crate) trace_id: i64,
    /// `None` if the trace does not say what time of day it was.
    times: Option<WallTimes>,
    /// UTC day of the first sample.
    date: Option<String>,
    folder: PathBuf,
}

/// A number of 63 bits from a hash.
pub(crate) fn id_of(hash: Sha256) -> i64 {
    let bytes = hash.finalize();
    let number = bytes
        .iter()
        .take(8)
        .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    (number >> 1).cast_signed()
}

impl DatasetFacts {
    /// Of a dataset in a folder.
    pub(crate) fn new(session: &TraceSession, folder: &Path) -> Self {
        let origin = Origin::new(session);
        let times = session.wall_times().cloned();
        let first = times.as_ref().and(origin.wall_ns);
        let first = first.and_then(|ns| Timestamp::from_nanosecond(ns.into()).ok());
        Self {
            trace_id: trace_id(session, &origin),
            times,
            date: first.map(|first| first.strftime("%Y-%m-%d").to_string()),
            folder: folder.to_owned(),
            origin,
        }
    }

    /// A time of the trace's clock, ns since 1970.
    #[inline]
    pub(crate) fn wall(&self, time: u64) -> Option<i64> {
        i64::try_from(self.times.as_ref()?.wall(time)).ok()
    }

    /// Maximum error of these times against the host's own wall clock, ns; `None` if it is not known.
    pub(crate) fn wall_error(&self) -> Option<u32> {
        let times = self.times.as_ref()?;
        times.count().map(|_| times.error_ns())
    }

    /// Where a table is.
    pub(crate) fn place(&self, table: &str) -> TablePlace {
        let host = Some(&*self.origin.host);
        let folder = self.folder.join(folder_name("table", Some(table)));
        let folder = folder.join(folder_name("host", host));
        TablePlace {
            folder: folder.join(folder_name("date", self.date.as_deref())),
            stem: format!("{:016x}", self.trace_id),
        }
    }

    /// A table of the whole trace, without rows.
    pub(crate) fn table(&self, table: &DatasetTable) -> io::Result<ParquetTable> {
        let columns = ColumnSpec::of_table(table);
        ParquetTable::new(self.place(table.name), &columns, &self.metadata(table.name))
    }

    /// What each file says of itself, where the names of its folders are lost.
    pub(crate) fn metadata(&self, table: &str) -> Vec<(&'static str, String)> {
        vec![
            ("usdtrec.schema_version", SCHEMA_VERSION.to_string()),
            ("usdtrec.table", table.to_owned()),
            ("usdtrec.host", self.origin.host.clone()),
            ("usdtrec.trace_id", self.trace_id.to_string()),
        ]
    }
}

fn trace_id(session: &TraceSession, origin: &Origin) -> i64 {
    let mut hash = Sha256::new();
    let mut number = |number: u64| hash.update(number.to_le_bytes());
    let clock = session.info().clock;
    let time = session.time();
    number(clock.map_or(0, |clock| clock.wall_ns));
    number(clock.map_or(0, |clock| clock.clock_ns));
    number(time.map_or(0, |time| time.first));
    number(time.map_or(0, |time| time.last));
    let names = [&origin.host, &origin.machine, &origin.kernel];
    for text in names.into_iter().chain(&origin.command) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    id_of(hash)
}
