//! Attaching probes of files that appear while recording, in a thread of its own ([`engine`](usdtrec_attach::engine)).

use std::sync::mpsc::Sender;

use usdtrec_attach::engine::{self, LatePart, TaskFilter, UprobePmu};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::select::argument_list::leave_out_unfit;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_watch::left_breakpoints::{AddedNotes, SiteNotes};
use usdtrec_watch::semaphores::{self, Semaphores};
use usdtrec_watch::shortfalls::Shortfalls;
use usdtrec_watch::verify::ExpectedFiles;

/// Attached probes, for [`Session::add`](super::session::Session::add).
#[derive(Debug)]
pub(super) struct PlantedPart {
    pub(super) part: LatePart,
    /// Their files, for the [`Pipeline`](super::Pipeline).
    pub(super) files: ExpectedFiles,
}

/// Attaches probes of files that appear while recording.
#[derive(Debug)]
pub(super) struct LatePlanter {
    engine: engine::PartPlanter,
    /// Notes of their sites; `None` if they cannot be written.
    notes: Option<AddedNotes>,
    semaphores: Option<SemaphoreStart>,
}

/// How the first probes with semaphores that the kernel counts wrong have these counted.
#[derive(Debug)]
pub(super) struct SemaphoreStart {
    pub(super) filter: TaskFilter,
    pub(super) pmu: UprobePmu,
    pub(super) shortfalls: Shortfalls,
    /// Takes what counts them, before the probes are attached.
    pub(super) started: Sender<Semaphores>,
}

impl LatePlanter {
    pub(super) fn new(
        engine: engine::PartPlanter,
        notes: Option<&SiteNotes>,
        semaphores: Option<SemaphoreStart>,
    ) -> Self {
        Self {
            engine,
            notes: notes.and_then(|notes| notes.adding().ok()),
            semaphores,
        }
    }

    /// Attaches probes of files that are not recorded yet, disabled.
    ///
    /// # Errors
    /// As [`Session::attach`](super::session::Session::attach); [`RecordError::Interrupted`] if the recording ends meanwhile.
    pub(super) fn plant(
        &mut self,
        mut probes: Vec<PlannedProbe>,
    ) -> Result<PlantedPart, RecordError> {
        let unfit = leave_out_unfit(&mut probes, false, |probe| Ok(probe.find_shown()?))?;
        if let Some(notes) = &mut self.notes {
            let others = semaphores::places(&probes);
            // As at the start of a recording: without notes a breakpoint that stays is found by looking at all files.
            let _ = notes.add(&ExpectedFiles::of_probes(&probes), &others);
        }
        let needs = |_: &&SemaphoreStart| semaphores::are_counted_wrong(&probes);
        if let Some(start) = self.semaphores.as_ref().filter(needs) {
            // If it fails, the next file tries again.
            start.begin()?;
            self.semaphores = None;
        }
        let planted = self
            .engine
            .plant(&probes)
            .map(|part| part.with_refused(unfit));
        for probe in &probes {
            probe.program.free();
        }
        let part = planted?;
        Ok(PlantedPart {
            files: ExpectedFiles::of_probes(part.probes()),
            part,
        })
    }
}

impl SemaphoreStart {
    fn begin(&self) -> Result<(), RecordError> {
        let Self {
            filter,
            pmu,
            shortfalls,
            started,
        } = self;
        let semaphores = Semaphores::start_without_probes(filter, *pmu, shortfalls.clone())?;
        // Nobody takes it if the recording has ended.
        let _ = started.send(semaphores);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
