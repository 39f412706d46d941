//! What is looked at after each pass over the rings: the budget and hot probes, and what has fired, for which files are made of the window.

use std::sync::Arc;

use usdtrec_attach::error::RecordError;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::signals::Signals;
use usdtrec_watch::verify::Verifier;

use crate::budget::budgeting::Switched;
use crate::budget::stage::{HotThreads, PauseStage};
use crate::recording::Recording;
use crate::triggers::pace::DueTrigger;
use crate::triggers::watch::TriggerWatch;

/// How long a file may be delayed because the rings are never empty, ns.
const MAX_DELAY: u64 = 2_000_000_000;

impl Recording {
    /// Has probes detached and attached again so that no thread exceeds its budget.
    pub(super) fn look_at_budget(&mut self) -> Result<(), RecordError> {
        let stage = self.pipeline.stages.get_mut::<PauseStage>();
        let (Some(budgeting), Some(stage)) = (&mut self.budgeting, stage) else {
            return Ok(());
        };
        let mut records = Vec::new();
        let switched = budgeting.look(stage, &self.session.attached, &mut records);
        let switched = switched.map_err(KernelError::host("the events' counts"))?;
        let Switched {
            first_paused,
            attached,
        } = switched;
        let verifier = self.pipeline.stages.get::<Verifier>();
        if let Some(verifier) = verifier.filter(|_| !first_paused.is_empty()) {
            verifier.pause(Arc::from(first_paused));
        }
        if let Some(triggers) = self.pipeline.stages.get_mut::<TriggerWatch>() {
            triggers.end_pause(&attached);
        }
        self.files.push(&records);
        Ok(())
    }

    /// Looks for a hot probe, unless one was found.
    pub(super) fn look_at_hot_probes(&mut self) {
        let session = &self.session;
        if let Some(stage) = self.pipeline.stages.get_mut::<HotThreads>() {
            self.hot_probes
                .look(stage, &session.attached, &session.options);
        }
    }

    /// Writes to a file that begins which pauses last.
    pub(super) fn write_open_pauses(&mut self) {
        let mut records = Vec::new();
        if let Some(budgeting) = &self.budgeting {
            budgeting.put_open_pauses(&mut records);
        }
        self.files.push(&records);
    }

    /// Looks at what fired. All hits up to `read` have been read unless rings are behind. Returns whether the recording ends.
    pub(super) fn look_at_triggers(
        &mut self,
        signals: &Signals,
        read: u64,
    ) -> Result<bool, RecordError> {
        self.fire_sighted();
        self.triggering.take_asked(signals);
        self.triggering.take_done();
        let Some(due) = self.triggering.take_due(self.read_up_to(read)) else {
            return Ok(false);
        };
        if due.ends {
            self.triggering.ending = Some(due);
            return Ok(true);
        }
        self.make_file(due)?;
        Ok(false)
    }

    /// Up to when all hits have been read by a pass that began at `read`.
    pub(super) const fn read_up_to(&self, read: u64) -> u64 {
        match self.is_behind {
            true => read.saturating_sub(MAX_DELAY),
            false => read,
        }
    }

    /// Fires what hits of the last passes have.
    pub(super) fn fire_sighted(&mut self) {
        let Some(watch) = self.pipeline.stages.get_mut::<TriggerWatch>() else {
            return;
        };
        let sighted = watch.take_sighted();
        self.triggering.pace.note_more(sighted.more);
        if let Some(first) = sighted.first {
            self.triggering.pace.fire(first.fired, first.ends);
        }
    }

    /// Makes a file of the window, or notes in the file that is written what fired.
    pub(super) fn make_file(&mut self, due: DueTrigger) -> Result<(), RecordError> {
        let Some(window) = &mut self.triggering.window else {
            let id_type = self.session.attached.processes.attr.attr.id_type();
            let mut record = Vec::new();
            // It has nothing that JSON has not.
            if due.fired.encode(id_type, &mut record).is_ok() {
                self.files.push(&record);
            }
            if !due.ends {
                self.files.note_trigger();
                self.triggering.note(due.fired);
            }
            return Ok(());
        };
        window.served.append(&mut window.waiting);
        let counts = self.count()?;
        self.files.add_losses(&counts.since(&self.counts))?;
        self.counts = counts;
        let content = self.files.content()?;
        if let (Some(content), Some(window)) = (content, &mut self.triggering.window) {
            window.maker.make(content, due);
        }
        Ok(())
    }
}
