//! Adds attached probes to the recording, between two passes of its loop.

use std::collections::BTreeSet;
use std::time::Duration;

use super::added_file::AddedFile;
use super::reports::PlantedFile;
use super::search::{AttachedFile, RefusedFile, SearchedFile};
use crate::clocks::trace_clock;
use crate::engine::MAX_HOLD;
use crate::error::{RecordError, with_source};
use crate::recording::Recording;
use crate::recording::late_planter::PlantedPart;
use crate::recording::pipeline::AddedFiles;
use crate::select::probe::PlannedProbe;

impl Recording {
    /// Adds what was attached since the last pass, and enables it: all of it at once, since the trace describes all events anew.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(in crate::recording) fn plant_found(&mut self) -> Result<(), RecordError> {
        // What was found in these files has been sent.
        let done = self.follower.queue.done();
        let before = self.session.probes().len();
        let mut added = Vec::new();
        while let Some(found) = self.follower.next() {
            match found {
                SearchedFile::Planted(attached) => added.extend(self.add(attached)?),
                SearchedFile::Refused(file) => self.follower.refuse(file, &self.session.shortfalls),
            }
        }
        if !added.is_empty() {
            self.files.add_events(self.session.describe_added(before))?;
            self.session.enable_added()?;
            let all = before..self.session.probes().len();
            self.file_watch.add(&self.session, all);
        }
        let planted_at = trace_clock::now();
        let added = added
            .into_iter()
            .map(|file| AddedFile { planted_at, ..file });
        self.follower.unreported.extend(added);
        self.report_planted(!self.follower.no_gap);
        while let Some(mapping) = self.follower.held.take(done) {
            self.session.attached.engine.answer(&mapping);
        }
        self.session.attached.engine.go_on();
        Ok(())
    }

    /// Adds the probes of a file, if there are any, and reports those that are not attached.
    fn add(&mut self, attached: AttachedFile) -> Result<Option<AddedFile>, RecordError> {
        let AttachedFile {
            file,
            planted,
            refusals,
        } = attached;
        let PlantedPart { part, files } = *planted;
        let added = self.session.add(part);
        let mut reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        let refused = added.refused.iter();
        reasons.extend(refused.map(|refused| with_source(&refused.error)));
        let probes = (!added.probes.is_empty()).then_some(added.probes);
        if let Some(probes) = &probes {
            let added = AddedFiles {
                probes,
                files,
                pids: &[file.origin.pid],
            };
            self.pipeline.add(&self.session, added)?;
        }
        if !reasons.is_empty() || probes.is_none() {
            let refused = RefusedFile {
                file: file.clone(),
                reason: reasons.join("; "),
            };
            self.follower.refuse(refused, &self.session.shortfalls);
        }
        Ok(probes.map(|probes| AddedFile {
            file,
            probes,
            is_everywhere: added.is_everywhere,
            planted_at: 0,
        }))
    }

    /// Reports the files that were planted. A thread may be interrupted between the record of a mapping and its hold: unless `all` are to be reported,
    /// files wait for the hold for as long as it could last.
    pub(in crate::recording) fn report_planted(&mut self, all: bool) {
        if self.follower.unreported.is_empty() {
            return;
        }
        let engine = &self.session.attached.engine;
        self.follower.held.look(|mapping| engine.is_held(mapping));
        let now = trace_clock::now();
        for file in std::mem::take(&mut self.follower.unreported) {
            let is_late = Duration::from_nanos(now.saturating_sub(file.planted_at)) > MAX_HOLD;
            let origin = &file.file.origin;
            if all || is_late || origin.mapped_at == 0 || self.follower.held.knows(origin) {
                self.report(&file);
            } else {
                self.follower.unreported.push(file);
            }
        }
    }

    fn report(&mut self, file: &AddedFile) {
        let planted_at = file.planted_at;
        let probes = self.session.probes().get(file.probes.clone());
        let probes = probes.unwrap_or_default();
        let events: BTreeSet<String> = probes.iter().map(PlannedProbe::event).collect();
        let planted = PlantedFile {
            held: self.follower.held.held_for(&file.file.origin, planted_at),
            origin: file.file.origin.clone(),
            events: events.iter().map(String::as_str).collect(),
            sites: probes.iter().map(|probe| probe.sites.len()).sum(),
            is_everywhere: file.is_everywhere,
            planted_at,
        };
        self.follower.note(planted, &self.session.shortfalls);
    }
}
