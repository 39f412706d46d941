//! Reads files, selects their probes and attaches them.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use usdtrec_attach::error::{RecordError, with_source};
use usdtrec_attach::places::Account;
use usdtrec_attach::select::found_files::FoundProbes;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_attach::select::program::Program;
use usdtrec_attach::select::refusal::{Refusal, RefusalReason};
use usdtrec_attach::select::trace_room::TraceRoom;
use usdtrec_attach::select::{EventSelector, FileRequest, Selection, select_in_file};
use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_buildid_cache::{file_id, locate};
use usdtrec_format::{Binary, BuildId, Pattern, Probe};
use usdtrec_kernel::host::identity;
use usdtrec_kernel::host::identity::is_same_inode;
use usdtrec_kernel::host::limits::HighPriority;
use usdtrec_kernel::host::limits::WorkTime;
use usdtrec_kernel::host::process::live_directory;
use usdtrec_watch::semaphores;

use super::origin::{Origin, account_of, owner};
use super::queue::{Next, Queue, Taken};
use super::settings::Following;
use super::unmapped::{Outcome, UnmappedFiles};
use crate::recording::build_ids::NewFile;
use crate::recording::late_planter::{LatePlanter, PlantedPart};
use crate::recording::mapped_file::MappedFileId;
use crate::recording::session::Session;

/// Why a file is not attached that was found too late.
pub(super) const ENDED: &str = "the recording ended first";

/// What the thread has found.
#[derive(Debug)]
pub(super) enum SearchedFile {
    /// Probes that are attached and not enabled.
    Planted(AttachedFile),
    /// A file with selected probes that are not attached.
    Refused(RefusedFile),
    /// Files that no process maps now, or that had no place: each further mapping is to be reported.
    Unmapped(Vec<MappedFileId>),
    /// A file that no process maps any more: its probes are to be detached.
    Released(Arc<Program>),
}

/// A file whose probes are attached.
#[derive(Debug)]
pub(super) struct AttachedFile {
    /// What is known of it if it is refused after all.
    pub(super) file: SelectedFile,
    pub(super) planted: Box<PlantedPart>,
    /// Probes of the file that are not attached.
    pub(super) refusals: Vec<Refusal>,
}

/// A file with selected probes.
#[derive(Clone, Debug)]
pub(super) struct SelectedFile {
    pub(super) origin: Origin,
    /// A pattern that selects some of its probes.
    pub(super) pattern: String,
    /// The events.
    pub(super) events: Vec<String>,
}

/// A file whose probes are not attached.
#[derive(Debug)]
pub(super) struct RefusedFile {
    pub(super) file: SelectedFile,
    pub(super) reason: String,
}

/// A file with selected probes, open.
struct MappedProbes {
    id: MappedFileId,
    object: Arc<ObjectFile>,
    found: FoundProbes,
}

/// What was attached.
struct Planted {
    part: Box<PlantedPart>,
    refusals: Vec<Refusal>,
    /// The file, if its probes are to be detached when no process maps it.
    released_later: Option<Arc<Program>>,
}

/// The state of the thread.
pub(super) struct Search {
    following: Following,
    /// For the patterns with a path: that path, absolute.
    paths: Vec<Option<PathBuf>>,
    /// Whether processes are held until their files are done.
    no_gap: bool,
    /// Files that are recorded.
    recorded: Vec<Arc<Program>>,
    /// The build-ids of files that could not be attached: they are not tried again, and not kept open.
    failed: HashMap<MappedFileId, Option<BuildId>>,
    /// The recorded builds of patterns with digits of a build-id, by their texts.
    builds: HashMap<String, BuildId>,
    room: TraceRoom,
    /// Attaches; or why that is impossible.
    planter: Result<LatePlanter, RecordError>,
    unmapped: UnmappedFiles,
    /// Files for which there was no place: they are tried again when they are mapped again.
    without_place: Vec<MappedFileId>,
    /// The programs of the files that are looked for.
    followed: HashMap<MappedFileId, Arc<Program>>,
    queue: Arc<Queue>,
    found: Sender<SearchedFile>,
    wake: Arc<OwnedFd>,
}

impl Search {
    pub(super) fn new(
        session: &Session,
        queue: Arc<Queue>,
        found: Sender<SearchedFile>,
        wake: Arc<OwnedFd>,
    ) -> Self {
        let mut known: HashSet<FileId> = HashSet::new();
        let programs = session.probes().iter().map(|probe| &probe.program);
        let programs = programs.filter(|program| known.insert(program.file().id()));
        let recorded: Vec<Arc<Program>> = programs.cloned().collect();
        let following = session.options.following.clone();
        let absolute = |event: &EventSelector| {
            let located = locate(event.pattern.path()?).ok()?;
            std::path::absolute(located).ok()
        };
        let build = |event: &EventSelector| {
            let is_of = |probe: &&Arc<PlannedProbe>| {
                let pattern = &event.pattern;
                pattern.fits_build(probe.build_id) && pattern.matches(&probe.provider, &probe.name)
            };
            event.pattern.build()?;
            let probe = session.probes().iter().find(is_of)?;
            Some((event.pattern.text().to_owned(), probe.build_id?))
        };
        Self {
            builds: following.events.iter().filter_map(build).collect(),
            paths: following.events.iter().map(absolute).collect(),
            following,
            no_gap: session.attached.engine.holds_mappings(),
            recorded,
            failed: HashMap::new(),
            room: TraceRoom::beside(session.probes()),
            planter: session.late_planter(),
            unmapped: UnmappedFiles::new(),
            without_place: Vec::new(),
            followed: HashMap::new(),
            queue,
            found,
            wake,
        }
    }

    pub(super) fn run(mut self) {
        let _high_priority = self.no_gap.then(HighPriority::begin);
        loop {
            let taken = match self.queue.take(self.unmapped.due()) {
                Next::File(taken) => *taken,
                Next::Idle => {
                    if !self.release_unmapped() {
                        return;
                    }
                    continue;
                }
                Next::Closed => return,
            };
            let (user, work) = (taken.user, WorkTime::begin());
            let found = self.look(taken);
            // Attaching mostly waits for the kernel, and is limited by the budget. A held process does not wait for pauses.
            if !matches!(found, Some(SearchedFile::Planted(_))) && !self.no_gap {
                self.queue.note_time(user, work.taken());
            }
            let is_awaited = found.is_some() || self.no_gap;
            let again = std::mem::take(&mut self.without_place);
            let again = (!again.is_empty()).then_some(SearchedFile::Unmapped(again));
            let mut found = found.into_iter().chain(again);
            // The recording has ended.
            if found.any(|found| self.found.send(found).is_err()) {
                return;
            }
            self.queue.note_done();
            if is_awaited {
                let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
            }
        }
    }

    /// Releases files that no process maps any more. Returns whether the recording continues.
    fn release_unmapped(&mut self) -> bool {
        let Outcome { unmapped, released } = self.unmapped.look();
        if unmapped.is_empty() && released.is_empty() {
            return true;
        }
        let mut goes_on = self.found.send(SearchedFile::Unmapped(unmapped)).is_ok();
        for file in released {
            if let Some(program) = self.followed.remove(&file) {
                self.recorded.retain(|known| !Arc::ptr_eq(known, &program));
                program.release();
                let released = SearchedFile::Released(program);
                goes_on &= self.found.send(released).is_ok();
            }
        }
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        goes_on
    }

    /// Attaches the selected probes of a file; `None` if it has none, or is recorded, or was tried in vain.
    fn look(&mut self, taken: Taken) -> Option<SearchedFile> {
        let Taken {
            file, is_ending, ..
        } = taken;
        let (id, pid) = (file.id, file.pid);
        if let Some(known) = self.recorded(&file) {
            self.unmapped.note_mapped(id, pid);
            // It appears among mappings as several files, by mounts of an overlay: then it stays.
            let others = self.followed.iter();
            let others = others.filter(|(other, of)| **other != id && Arc::ptr_eq(of, &known));
            others.for_each(|(other, _)| self.unmapped.remove(*other));
            return None;
        }
        if self.failed.get(&id) == Some(&file.object.build_id()) {
            return None;
        }
        let mut found = FoundProbes::of_found(&file.object, &self.patterns())?;
        // A file that the user named has no limits.
        let leads = self.leading(&file, &found);
        let is_named = leads.contains(&true);
        if is_named {
            found = FoundProbes::of_named(&file.object)?;
        }
        let binary = Arc::clone(&found.binary);
        let mut events = self.selecting(&leads, &binary);
        let pattern = events.first()?.pattern.text().to_owned();
        let selected = SelectedFile {
            events: event_names(&binary, &events),
            pattern,
            origin: Origin {
                pid: file.pid,
                tid: file.tid,
                mapped_at: file.mapped_at,
                ended: file.ended,
                path: file.object.path().to_owned(),
                build_id: binary.build_id,
                owner: owner(&file),
            },
        };
        let several = self.remove_other_builds(&mut events, &binary, file.object.path());
        let planted = match events.is_empty() {
            true => Err(reasons(&several)),
            false if is_ending => Err(ENDED.to_owned()),
            false => {
                let account = (!is_named).then(|| account_of(&file));
                let mapped = MappedProbes {
                    id,
                    object: Arc::new(file.object),
                    found,
                };
                self.plant(account, mapped, &events)
            }
        };
        Some(match planted {
            Ok(Planted {
                part,
                refusals,
                released_later,
            }) => {
                self.note_builds(&events, binary.build_id);
                if let Some(program) = released_later
                    && let Some(identity) = identity::of_file(program.file())
                {
                    self.unmapped.add(id, pid, identity);
                    self.followed.insert(id, program);
                }
                SearchedFile::Planted(AttachedFile {
                    file: selected,
                    planted: part,
                    refusals: [several, refusals].concat(),
                })
            }
            Err(reason) => SearchedFile::Refused(RefusedFile {
                file: selected,
                reason,
            }),
        })
    }

    /// Selects and attaches the probes of a file; or why they are not attached.
    fn plant(
        &mut self,
        account: Option<Account>,
        file: MappedProbes,
        events: &[EventSelector],
    ) -> Result<Planted, String> {
        let planter = self.planter.as_mut();
        let planter = planter.map_err(|error| with_source(error))?;
        let Selection {
            mut probes,
            refusals,
            refused_files,
            ..
        } = select_in_file(
            &file.object,
            FileRequest {
                probes: file.found,
                events,
                schemas: &self.following.schemas,
                force: self.following.force,
                places: &self.following.places,
                account,
            },
        );
        let refusals = [refusals, refused_files].concat();
        let Some(first) = probes.first() else {
            let has_no_place =
                |refusal: &Refusal| matches!(refusal.reason, RefusalReason::Places(_));
            if refusals.iter().any(has_no_place) {
                self.without_place.push(file.id);
                self.unmapped.note_no_place();
            }
            return Err(reasons(&refusals));
        };
        let program = Arc::clone(&first.program);
        (self.following.complete)(&mut probes);
        // What is counted for the kernel in processes is not taken back here, and what the user named stays.
        let is_released = account.is_some() && !semaphores::are_counted_wrong(&probes);
        let room = self.room.take(&program, &probes);
        let plant = || {
            planter.plant(probes).map_err(|error| match error {
                RecordError::Interrupted(_) => ENDED.to_owned(),
                RecordError::Refused(refusals) => reasons(&refusals),
                error => with_source(&error),
            })
        };
        let part = room
            .map_err(|reason| reason.to_string())
            .and_then(|()| plant());
        match &part {
            Ok(_) => self.recorded.push(Arc::clone(&program)),
            Err(_) => {
                program.give_back();
                self.failed.insert(file.id, program.file().build_id());
            }
        }
        Ok(Planted {
            part: Box::new(part?),
            refusals,
            released_later: is_released.then_some(program),
        })
    }

    /// Removes the patterns whose digits of a build-id are those of another recorded build, too. The refusals have the probes that no other
    /// pattern selects.
    fn remove_other_builds(
        &self,
        events: &mut Vec<EventSelector>,
        binary: &Binary,
        path: &Path,
    ) -> Vec<Refusal> {
        let removed = events.extract_if(.., |event| self.other_build(event, binary).is_some());
        let removed: Vec<EventSelector> = removed.collect();
        let refusal = |event: EventSelector| {
            let mut names = event_names(binary, std::slice::from_ref(&event));
            let selected: HashSet<String> = event_names(binary, events).into_iter().collect();
            names.retain(|name| !selected.contains(name));
            Some(Refusal {
                path: path.to_owned(),
                reason: RefusalReason::SeveralBuilds {
                    pattern: event.pattern.text().to_owned(),
                    recorded: Box::new(self.other_build(&event, binary)?),
                    found: Box::new(binary.build_id?),
                },
                events: names,
            })
        };
        let refusals = removed.into_iter().filter_map(refusal);
        refusals
            .filter(|refusal| !refusal.events.is_empty())
            .collect()
    }

    /// The recorded build whose build-id begins with the digits of a pattern, as that of another file does. The whole build-id of that is meant.
    fn other_build(&self, event: &EventSelector, binary: &Binary) -> Option<BuildId> {
        let (digits, found) = event.pattern.build().zip(binary.build_id)?;
        let recorded = self.builds.get(event.pattern.text())?;
        (*recorded != found && !digits.is_whole(found)).then_some(*recorded)
    }

    /// Notes that a build is recorded.
    fn note_builds(&mut self, events: &[EventSelector], build: Option<BuildId>) {
        for event in events
            .iter()
            .filter(|event| event.pattern.build().is_some())
        {
            let pattern = event.pattern.text().to_owned();
            self.builds.extend(build.map(|build| (pattern, build)));
        }
    }

    /// The program whose probes are attached, if it is that file.
    fn recorded(&self, file: &NewFile) -> Option<Arc<Program>> {
        let mut recorded = self.recorded.iter();
        let known = recorded.find(|program| is_same_inode(program.file(), &file.object));
        known.cloned()
    }

    fn patterns(&self) -> Vec<&Pattern> {
        let events = self.following.events.iter();
        events.map(|event| &event.pattern).collect()
    }

    /// Of each event, whether its pattern has a path that leads to a file of which it may select probes.
    fn leading(&self, file: &NewFile, found: &FoundProbes) -> Vec<bool> {
        let events = self.following.events.iter().zip(&self.paths);
        let leads = events.map(|(event, path)| {
            let may_select = found.is_partial || has_probe(event, &found.binary);
            may_select && path.as_ref().is_some_and(|path| is_at(file, path))
        });
        leads.collect()
    }

    /// The events whose patterns select probes of a file to which those with these paths lead.
    fn selecting(&self, leads: &[bool], binary: &Binary) -> Vec<EventSelector> {
        let events = self.following.events.iter().zip(leads);
        let selecting = events.filter(|(event, leads)| {
            (**leads || event.pattern.path().is_none()) && has_probe(event, binary)
        });
        selecting.map(|(event, _)| event.clone()).collect()
    }
}

fn has_probe(event: &EventSelector, binary: &Binary) -> bool {
    let mut probes = binary.probes.iter();
    event.pattern.fits_build(binary.build_id)
        && probes.any(|probe| event.pattern.matches(&probe.provider, &probe.name))
}

fn reasons(refusals: &[Refusal]) -> String {
    let reasons = refusals.iter().map(|refusal| refusal.reason.to_string());
    reasons.collect::<Vec<_>>().join("; ")
}

/// Whether a path leads to a file: as its process sees it, or from here.
fn is_at(file: &NewFile, path: &PathBuf) -> bool {
    let id = Some(file.object.id());
    let reader = Reader {
        account: account_of(file),
        device: file.id.device,
        patience: Patience::Usual,
    };
    let inside = || {
        let below = path.strip_prefix("/").ok()?;
        file_id(&live_directory(file.pid).join("root").join(below), reader)
    };
    file.path == *path || file_id(path, reader) == id || inside() == id
}

/// Names of the selected probes' events.
fn event_names(binary: &Binary, events: &[EventSelector]) -> Vec<String> {
    selected(binary, events).map(Probe::event).collect()
}

fn selected<'a>(
    binary: &'a Binary,
    events: &'a [EventSelector],
) -> impl Iterator<Item = &'a Probe> {
    let is_selected = |probe: &&Probe| {
        let mut events = events.iter();
        events.any(|event| event.pattern.matches(&probe.provider, &probe.name))
    };
    binary.probes.iter().filter(is_selected)
}
