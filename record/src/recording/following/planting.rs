//! Adds attached probes to the recording, between two passes of its loop.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_attach::engine::MAX_HOLD;
use usdtrec_attach::error::{RecordError, with_source};
use usdtrec_attach::select::probe::RefusedProbe;
use usdtrec_attach::select::program::Program;
use usdtrec_attach::select::refusal::Refusals;
use usdtrec_format::trace::WriteError;
use usdtrec_kernel::trace_clock;
use usdtrec_watch::verify::{ExpectedFiles, Verifier};

use super::added_file::AddedFile;
use super::reports::PlantedFile;
use super::search::{AttachedFile, RefusedFile, SearchedFile, SelectedFile};
use crate::recording::Recording;
use crate::recording::late_planter::PlantedPart;
use crate::recording::pipeline::AddedFiles;

/// Probes of a file that were added, and are not part of the trace yet.
struct NewPart {
    file: SelectedFile,
    probes: Range<usize>,
    files: ExpectedFiles,
    is_everywhere: bool,
}

impl Recording {
    /// Adds what was attached since the last pass, and enables it: all of it at once, since the trace describes all events anew.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(in crate::recording) fn plant_found(&mut self) -> Result<(), RecordError> {
        // What was found in these files has been sent.
        let progress = self.follower.progress(self.session.build_ids.slow_tries());
        let before = self.session.probes().len();
        let mut new = Vec::new();
        while let Some(found) = self.follower.next() {
            match found {
                SearchedFile::Planted(attached) => new.extend(self.add(attached)),
                SearchedFile::Refused(file) => self.follower.refuse(file, &self.session.shortfalls),
                SearchedFile::Unmapped(files) => {
                    self.session.build_ids.forget(files);
                }
                SearchedFile::Released(program) => self.release(&program),
            }
        }
        if !new.is_empty() {
            let added = self.describe(before, new)?;
            self.session.enable_added()?;
            let planted_at = trace_clock::now();
            for file in added {
                self.file_watch.add(&self.session, file.probes.clone());
                let file = AddedFile { planted_at, ..file };
                self.follower.unreported.push(file);
            }
        }
        self.report_planted(!self.follower.no_gap);
        while let Some(mapping) = self.follower.held.take(progress) {
            self.session.attached.engine.answer(&mapping);
        }
        Ok(())
    }

    /// Adds the probes of a file, if there are any, and reports those that are not attached.
    fn add(&mut self, attached: AttachedFile) -> Option<NewPart> {
        let AttachedFile {
            file,
            planted,
            refusals,
        } = attached;
        let PlantedPart { part, files } = *planted;
        let added = self.session.add(part);
        let refused = added.refused.iter().map(RefusedProbe::refusal);
        let refusals: Refusals = refusals.into_iter().chain(refused).collect();
        let refusals = refusals.into_vec();
        let probes = (!added.probes.is_empty()).then_some(added.probes);
        let reasons = refusals.iter().map(|refusal| refusal.reason.to_string());
        let reason = reasons.collect::<Vec<_>>().join("; ");
        match &probes {
            None => self.refuse(&file, reason),
            Some(_) if refusals.is_empty() => {}
            Some(_) => {
                let events = refusals.into_iter().flat_map(|refusal| refusal.events);
                let events = events.collect();
                let refused = RefusedFile {
                    file: SelectedFile {
                        events,
                        ..file.clone()
                    },
                    reason,
                };
                self.follower.refuse_some(refused, &self.session.shortfalls);
            }
        }
        Some(NewPart {
            file,
            probes: probes?,
            files,
            is_everywhere: added.is_everywhere,
        })
    }

    /// Adds the events of new parts to the trace, and the parts to what looks at their hits. Files whose events the trace cannot have are refused: what a
    /// file has ends no recording.
    ///
    /// # Errors
    /// The trace cannot be written.
    fn describe(
        &mut self,
        before: usize,
        new: Vec<NewPart>,
    ) -> Result<Vec<AddedFile>, RecordError> {
        let described = self.session.describe_added(before);
        match self.files.add_events(described) {
            Ok(_) => {}
            Err(RecordError::Write(error)) if !matches!(error, WriteError::Io { .. }) => {
                self.session.attached.take_back(before);
                for NewPart { file, .. } in new {
                    self.refuse(&file, error.to_string());
                }
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
        let mut all = Vec::new();
        for part in new {
            let NewPart {
                file,
                probes,
                files,
                is_everywhere,
            } = part;
            let added = AddedFiles {
                probes: &probes,
                files,
                pids: &[file.origin.pid],
            };
            match self.pipeline.add(&self.session, added) {
                Ok(()) => all.push(AddedFile {
                    file,
                    probes,
                    is_everywhere,
                    planted_at: 0,
                }),
                Err(error) => {
                    self.session.attached.engine.detach(probes.start);
                    self.refuse(&file, with_source(&error));
                }
            }
        }
        Ok(all)
    }

    fn refuse(&mut self, file: &SelectedFile, reason: String) {
        let refused = RefusedFile {
            file: file.clone(),
            reason,
        };
        self.follower.refuse(refused, &self.session.shortfalls);
    }

    /// Detaches the probes of a file that no process maps any more. Their counts stay.
    fn release(&mut self, program: &Arc<Program>) {
        if let Some(verifier) = self.pipeline.stages.get_mut::<Verifier>() {
            verifier.detach(program.file());
        }
        self.file_watch.release(program.file());
        let mut probes = self.session.probes().iter();
        let last = probes.rposition(|probe| Arc::ptr_eq(&probe.program, program));
        if let Some(mut start) = last {
            let is_its = |at: usize| {
                let probe = self.session.probes().get(at);
                probe.is_some_and(|probe| Arc::ptr_eq(&probe.program, program))
            };
            while start.checked_sub(1).is_some_and(is_its) {
                start -= 1;
            }
            self.session.attached.engine.detach(start);
        }
    }

    /// Reports the files that were attached. A thread may be interrupted between the record of a mapping and its hold: unless `all` are to be reported,
    /// files wait for the hold for as long as it could last.
    pub(in crate::recording) fn report_planted(&mut self, all: bool) {
        if self.follower.unreported.is_empty() {
            return;
        }
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
        let events: BTreeSet<String> = probes.iter().map(|probe| probe.event()).collect();
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
