//! Adds attached probes to the recording, between two passes of its loop.

use std::collections::BTreeSet;

use super::reports::PlantedFile;
use super::search::{AttachedFile, Found, RefusedFile};
use crate::clocks::trace_clock;
use crate::error::{RecordError, with_source};
use crate::recording::Recording;
use crate::select::probe::PlannedProbe;

impl Recording {
    /// Adds what was attached since the last pass.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(in crate::recording) fn plant_found(&mut self) -> Result<(), RecordError> {
        // What was found in these files has been sent.
        let done = self.follower.queue.done();
        while let Some(found) = self.follower.next() {
            match found {
                Found::Planted(attached) => self.plant(attached)?,
                Found::Refused(file) => self.follower.refuse(file, &self.session.shortfalls),
            }
        }
        while let Some(mapping) = self.follower.held.take(done) {
            self.session.attached.engine.answer(&mapping);
        }
        Ok(())
    }

    fn plant(&mut self, attached: AttachedFile) -> Result<(), RecordError> {
        let AttachedFile {
            file,
            part,
            refusals,
        } = attached;
        let added = self.session.add(*part);
        let is_attached = !added.probes.is_empty();
        let mut reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        reasons.extend(
            added
                .refused
                .iter()
                .map(|refused| with_source(&refused.error)),
        );
        if is_attached {
            let (pid, range) = (file.origin.pid, added.probes.clone());
            self.pipeline.add(&self.session, &range, &[pid])?;
            let events = self.session.describe_added(range.clone());
            self.files.add_events(events)?;
            self.session.enable_added()?;
            let probes = self.session.probes().get(range).unwrap_or_default();
            let events: BTreeSet<String> = probes.iter().map(PlannedProbe::event).collect();
            let planted_at = trace_clock::now();
            let planted = PlantedFile {
                held: self.follower.held.held_for(&file.origin, planted_at),
                origin: file.origin.clone(),
                events: events.iter().map(String::as_str).collect(),
                sites: probes.iter().map(|probe| probe.sites.len()).sum(),
                is_everywhere: added.is_everywhere,
                planted_at,
            };
            self.follower.note(planted, &self.session.shortfalls);
        }
        if !reasons.is_empty() || !is_attached {
            let reason = reasons.join("; ");
            let refused = RefusedFile { file, reason };
            self.follower.refuse(refused, &self.session.shortfalls);
        }
        Ok(())
    }
}
