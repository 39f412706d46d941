//! Records of a stream that wait until nothing earlier can come.

use std::sync::Arc;

use usdtrec_format::perf::{RawRecord, RecordType, Records, SampleType};
use usdtrec_format::trace::TimeRange;

use crate::process::log::{ProcessLog, Scope};
use crate::process::mappers::RecordedFiles;
use crate::session::TraceSession;

/// Records that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) id_type: SampleType,
    files: Arc<RecordedFiles>,
    /// Records of all kinds as they came.
    bytes: Vec<u8>,
    samples: Vec<Waiting>,
    others: Vec<Waiting>,
    /// Latest time of all records so far.
    latest: u64,
    /// Latest time when the last round ended.
    settled: u64,
}

/// A record that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: u64,
    /// Offset in the records.
    offset: usize,
}

/// What need not wait any longer.
#[derive(Debug)]
pub(crate) struct DueRecords {
    /// Records of all kinds.
    bytes: Vec<u8>,
    /// The samples in the order of time.
    samples: Vec<Waiting>,
}

/// The names and processes that are known up to a time.
#[derive(Debug)]
pub(crate) struct Settled {
    /// What happened to processes.
    pub(crate) log: ProcessLog,
    pub(crate) due: DueRecords,
}

impl Queue {
    pub(crate) fn new(session: &TraceSession) -> Self {
        let first = session.info().events.first();
        Self {
            id_type: first.map_or_else(SampleType::default, |event| event.attr.id_type()),
            files: Arc::clone(session.recorded_files()),
            ..Self::default()
        }
    }

    /// Takes the files of a session to which events were added.
    pub(crate) fn set_files(&mut self, session: &TraceSession) {
        self.files = Arc::clone(session.recorded_files());
    }

    pub(crate) fn push(&mut self, record: &RawRecord<'_>, time: u64) {
        let waiting = Waiting {
            time,
            offset: self.bytes.len(),
        };
        if record.kind == RecordType::SAMPLE {
            self.samples.push(waiting);
        } else {
            self.others.push(waiting);
        }
        self.latest = self.latest.max(time);
        record.put(&mut self.bytes);
    }

    /// Bytes of records that wait.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Ends a round and gives the time up to which records are settled.
    pub(crate) const fn end_round(&mut self) -> u64 {
        std::mem::replace(&mut self.settled, self.latest)
    }

    /// Removes the records up to a time: what happened to processes, and samples.
    pub(crate) fn up_to(&mut self, until: u64) -> Settled {
        let bytes = std::mem::take(&mut self.bytes);
        let samples = take(&mut self.samples, until);
        let mut log = ProcessLog::new(Scope::All, Arc::clone(&self.files));
        for waiting in take(&mut self.others, until) {
            if let Some(record) = record_at(&bytes, waiting) {
                // One that is too short is skipped.
                let _ = log.record_of_stream(&record, self.id_type);
            }
        }
        for waiting in self.samples.iter_mut().chain(&mut self.others) {
            let record = record_at(&bytes, *waiting);
            waiting.offset = self.bytes.len();
            if let Some(record) = record {
                record.put(&mut self.bytes);
            }
        }
        let due = DueRecords { bytes, samples };
        Settled { log, due }
    }
}

impl DueRecords {
    /// From the earliest to the latest time of the samples; `None` without samples.
    pub(crate) fn time(&self) -> Option<TimeRange> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        Some(TimeRange::new(first.time, last.time))
    }

    /// The bodies of the samples' records.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.samples.iter();
        records.filter_map(|waiting| Some(record_at(&self.bytes, *waiting)?.body))
    }
}

/// Removes the records up to a time, in the order of time; of equal times, in the order of arrival.
fn take(all: &mut Vec<Waiting>, until: u64) -> Vec<Waiting> {
    let mut due: Vec<Waiting> = all
        .extract_if(.., |waiting| waiting.time <= until)
        .collect();
    // Stable, and quick where rings were drained one after the other.
    due.sort_by_key(|waiting| waiting.time);
    due
}

fn record_at(bytes: &[u8], waiting: Waiting) -> Option<RawRecord<'_>> {
    Records::new(bytes.get(waiting.offset..)?).next()
}
