//! Looks at what probes take after each pass over the rings.

use std::sync::Arc;

use usdtrec_attach::error::RecordError;
use usdtrec_kernel::KernelError;

use usdtrec_watch::verify::Verifier;

use super::Recording;
use super::budgeting::Switched;
use crate::budget::{HotThreads, PauseStage};
use crate::triggers::TriggerWatch;

impl Recording {
    /// Has probes detached and attached again so that no thread exceeds its budget.
    pub(super) fn look_at_budget(&mut self) -> Result<(), RecordError> {
        let stage = self.pipeline.stage_mut::<PauseStage>();
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
        let verifier = self.pipeline.stage::<Verifier>();
        if let Some(verifier) = verifier.filter(|_| !first_paused.is_empty()) {
            verifier.pause(Arc::from(first_paused));
        }
        if let Some(triggers) = self.pipeline.stage_mut::<TriggerWatch>() {
            triggers.end_pause(&attached);
        }
        self.files.push(&records);
        Ok(())
    }

    /// Looks for a hot probe, unless one was found.
    pub(super) fn look_at_hot_probes(&mut self) {
        let session = &self.session;
        if let Some(stage) = self.pipeline.stage_mut::<HotThreads>() {
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
}
