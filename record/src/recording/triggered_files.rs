//! Looks at what has fired after each pass over the rings, and has files made of the window.

use usdtrec_attach::error::RecordError;
use usdtrec_kernel::signals::Signals;

use super::Recording;
use crate::triggers::{DueTrigger, TriggerWatch};

/// How long a file may be delayed because the rings are never empty, ns.
const MAX_DELAY: u64 = 2_000_000_000;

impl Recording {
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
        let Some(watch) = self.pipeline.stage_mut::<TriggerWatch>() else {
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
