//! Looks at what probes take after each pass over the rings.

use std::sync::Arc;

use usdtrec_attach::error::RecordError;
use usdtrec_kernel::KernelError;

use super::Recording;
use super::budgeting::Switched;

impl Recording {
    /// Has probes detached and attached again so that no thread exceeds its budget.
    pub(super) fn look_at_budget(&mut self) -> Result<(), RecordError> {
        let (Some(budgeting), Some(stage)) = (&mut self.budgeting, &mut self.pipeline.pauses)
        else {
            return Ok(());
        };
        let mut records = Vec::new();
        let switched = budgeting.look(stage, &self.session.attached, &mut records);
        let switched = switched.map_err(KernelError::host("the events' counts"))?;
        let Switched {
            first_paused,
            attached,
        } = switched;
        if !first_paused.is_empty() {
            self.pipeline.verifier.pause(Arc::from(first_paused));
        }
        if let Some(triggers) = &mut self.pipeline.triggers {
            triggers.end_pause(&attached);
        }
        self.files.push(&records);
        Ok(())
    }

    /// Looks for a hot probe, unless one was found.
    pub(super) fn look_at_hot_probes(&mut self) {
        let stage = &mut self.pipeline.hot_threads;
        let session = &self.session;
        self.hot_probes
            .look(stage, &session.attached, &session.options);
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
