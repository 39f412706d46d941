//! A copy of a window, of which a file is made.

use std::fs::File;

use usdtrec_format::perf::{SampleId, SampleType};
use usdtrec_format::trace::{
    ClockReading, Compression, FiredTrigger, Loss, PackedPiece, Totals, TraceInfo, TraceWriter,
    WriteError,
};

use super::Piece;
use super::kept_processes::KeptProcesses;
use super::shortened::ShortenedWindow;

/// Length of process records from which on they are packed, bytes.
const FLUSH_BYTES: usize = 1 << 20;

/// What a window has at a moment.
#[derive(Debug)]
pub(crate) struct WindowContent {
    pub(super) info: TraceInfo,
    pub(super) id_type: SampleType,
    pub(super) compression: Compression,
    pub(super) kept: KeptProcesses,
    pub(super) pieces: Vec<Piece>,
    /// From when on it has all hits, and up to when, ns of the trace's clock.
    pub(super) began: u64,
    pub(super) until: u64,
    /// Whether that is less than it is to hold.
    pub(super) shortened: Option<ShortenedWindow>,
    pub(super) clocks: Vec<ClockReading>,
    pub(super) losses: Vec<Loss>,
    pub(super) cpus_changed: bool,
}

impl WindowContent {
    /// A time of the trace's clock in ns since 1970.
    pub(super) fn wall_ns(&self, time: u64) -> i64 {
        let last = self.clocks.last();
        let ahead = last.map_or(0, ClockReading::ahead);
        i64::try_from(i128::from(time) + ahead).unwrap_or(i64::MAX)
    }

    /// Makes an empty file a complete trace that says what fired.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) fn write(self, file: File, fired: &FiredTrigger) -> Result<Totals, WriteError> {
        let mut writer = TraceWriter::create(file, &self.info, self.compression)?;
        writer.set_recorded(self.began, self.until);
        if self.cpus_changed {
            writer.set_cpus_changed();
        }
        writer.add_clocks(&self.clocks);
        let mut failed = None;
        self.kept.write(|records| {
            writer.push(records);
            if writer.unflushed() >= FLUSH_BYTES && failed.is_none() {
                failed = writer.flush_part().err();
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut record = Vec::new();
        // It has nothing that JSON has not.
        if fired.encode(self.id_type, &mut record).is_ok() {
            writer.push(&record);
        }
        record.clear();
        let id = SampleId {
            time: self.until,
            ..SampleId::default()
        };
        if let Some(shortened) = self.shortened
            && shortened
                .shortfall()
                .encode(&id, self.id_type, &mut record)
                .is_ok()
        {
            writer.push(&record);
        }
        writer.write_packed(self.pieces.into_iter().map(|piece| PackedPiece {
            records: piece.records,
            ends_round: piece.ends_round,
        }))?;
        writer.finish(&self.losses)
    }
}
