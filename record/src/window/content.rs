//! A copy of a window, of which a file is made, and the losses of the window with their times.

use std::collections::VecDeque;
use std::fs::File;

use usdtrec_format::perf::{SampleId, SampleType};
use usdtrec_format::trace::{
    ClockReading, Compression, FiredTrigger, Loss, PackedPiece, Totals, TraceInfo, TraceWriter,
    WriteError,
};

use crate::window::Piece;
use crate::window::files::ShortenedWindow;
use crate::window::kept_processes::KeptProcesses;

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
    pub(crate) losses: Vec<Loss>,
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
    pub(super) fn write(self, file: File, fired: &FiredTrigger) -> Result<Totals, WriteError> {
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

/// Maximum number of reports that are kept: they come once a second. Further ones are joined with the last one.
const MAX_REPORTS: usize = 4096;

/// The losses of a window.
#[derive(Debug, Default)]
pub(super) struct TimedLosses(VecDeque<Report>);

/// Losses since the report before.
#[derive(Debug)]
struct Report {
    /// ns of the trace's clock.
    time: u64,
    losses: Vec<Loss>,
}

impl TimedLosses {
    /// Adds what was lost since the last call up to a time.
    pub(super) fn add(&mut self, time: u64, losses: &[Loss]) {
        if losses.is_empty() {
            return;
        }
        let losses = losses.to_vec();
        if self.0.len() < MAX_REPORTS {
            self.0.push_back(Report { time, losses });
        } else if let Some(last) = self.0.back_mut() {
            last.time = time;
            last.losses.extend(losses);
        }
    }

    /// Forgets what was lost before a time.
    pub(super) fn forget_before(&mut self, time: u64) {
        while self.0.front().is_some_and(|oldest| oldest.time < time) {
            self.0.pop_front();
        }
    }

    /// All losses.
    pub(super) fn all(&self) -> Vec<Loss> {
        let losses = self.0.iter().flat_map(|report| &report.losses);
        losses.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_losses_are_forgotten() {
        let loss = |lost| Loss {
            event: 0,
            id: 1,
            lost,
        };
        let mut losses = TimedLosses::default();
        losses.add(10, &[loss(1)]);
        losses.add(20, &[]);
        losses.add(30, &[loss(2), loss(3)]);
        assert_eq!(losses.all().len(), 3);
        losses.forget_before(30);
        assert_eq!(losses.all(), [loss(2), loss(3)]);
    }
}
