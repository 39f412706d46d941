//! Attaching probes of files that appear while recording, in a thread of its own ([`engine`](crate::engine)).

use crate::engine::{self, LatePart};
use crate::error::RecordError;
use crate::left_breakpoints::{AddedNotes, SiteNotes};
use crate::select::probe::PlannedProbe;
use crate::semaphores;
use crate::verify::ExpectedFiles;

/// Attaches probes of files that appear while recording.
#[derive(Debug)]
pub(crate) struct LatePlanter {
    engine: engine::LatePlanter,
    /// Notes of their sites; `None` if they cannot be written.
    notes: Option<AddedNotes>,
}

impl LatePlanter {
    pub(super) fn new(engine: engine::LatePlanter, notes: Option<&SiteNotes>) -> Self {
        Self {
            engine,
            notes: notes.and_then(|notes| notes.adding().ok()),
        }
    }

    /// Attaches probes of files that are not recorded yet, disabled, for [`Session::add`](super::session::Session::add).
    ///
    /// # Errors
    /// As [`Session::attach`](super::session::Session::attach); [`RecordError::Interrupted`] if the recording ends meanwhile.
    pub(crate) fn plant(&mut self, mut probes: Vec<PlannedProbe>) -> Result<LatePart, RecordError> {
        probes.iter_mut().try_for_each(PlannedProbe::find_shown)?;
        if let Some(notes) = &mut self.notes {
            let others = semaphores::places(&probes);
            // As at the start of a recording: without notes a breakpoint that stays is found by looking at all files.
            let _ = notes.add(&ExpectedFiles::of_probes(&probes), &others);
        }
        let planted = self.engine.plant(&probes);
        for probe in &probes {
            probe.program.free();
        }
        planted
    }
}
