//! From patterns to probes: which sites of which files, checked, with their operands.

pub mod argument_list;
mod candidates;
pub mod found_files;
pub mod probe;
pub mod program;
pub mod refusal;
mod selected;
mod selector;
pub mod shared_instruction;
pub mod trace_room;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::{ElfError, FileId, ObjectFile};
use usdtrec_buildid_cache::served::{Patience, Reader};
use usdtrec_buildid_cache::{Indexed, live_directory, locate};
use usdtrec_format::Pattern;
use usdtrec_format::schema::Schemas;
use usdtrec_kernel::nop5;

use self::candidates::{Candidate, KnownFiles};
use self::found_files::{FoundFiles, FoundProbes};
use self::selector::Selector;
use self::trace_room::refuse_without_room;
use crate::error::RecordError;
use crate::places::{Account, Places};

pub use self::selected::Selection;
pub use self::selector::EventSelector;
pub use usdtrec_kernel::host::identity::is_same_inode;

/// What to select, and where to look for it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The events.
    pub events: &'a [EventSelector],
    /// The probes in files, according to the cache. This is a hint: the files' own notes are read before a probe is attached.
    pub indexed: Vec<Indexed>,
    /// Files of the traced processes, or of all that run, and of the command.
    pub files: Vec<Shared<ObjectFile>>,
    /// Those of them that were found in processes which nobody named, with these processes. What is attached in them is limited, and what is wrong with
    /// them is no error.
    pub found: HashMap<FileId, Vec<u32>>,
    /// What is attached in such files.
    pub places: &'a Places,
    /// Whether `files` has what all processes of this host run.
    pub is_host: bool,
    /// The traced processes and threads, if they are named. The files that they map take precedence over the cache, and paths are resolved
    /// below their root directories.
    pub processes: &'a [u32],
    /// Attach even if a check of the file fails, or its pages cannot be kept in the page cache.
    pub force: bool,
    /// Whether programs may start while the probes are attached: those that then copy their code are refused.
    pub starts_programs: bool,
    /// Whether a pattern without a path may select no probe yet. An exact one of a provider that is known may not.
    pub may_wait: bool,
    /// Names and types of arguments.
    pub schemas: &'a Schemas,
}

/// Selects probes and checks their files and sites.
///
/// # Errors
/// [`RecordError::NoProbe`] if a pattern selects no probe, and may not wait; [`RecordError::Build`] if its build-id is not that of one build; [`RecordError::Refused`] if none of the selected probes can be attached;
/// [`RecordError::Find`], [`RecordError::File`] and [`RecordError::FileOfProcess`] if the file of a pattern cannot be opened.
pub fn select(request: Request<'_>) -> Result<Selection, RecordError> {
    let mut selector = Selector {
        processes: request.processes,
        is_host: request.is_host,
        may_wait: request.may_wait,
        force: request.force,
        starts_programs: request.starts_programs,
        ..Selector::new(request.schemas)
    };
    let paths = request.events.iter().map(|event| event.pattern.path());
    let named = paths.map(|path| path.map(|path| named(path, request.processes)).transpose());
    let named: Vec<Option<Vec<Shared<ObjectFile>>>> = named.collect::<Result<_, _>>()?;
    let patterns = request.events.iter().map(|event| &event.pattern);
    let patterns: Vec<&Pattern> = patterns.filter(|one| one.path().is_none()).collect();
    let named_files: Vec<&Shared<ObjectFile>> = named.iter().flatten().flatten().collect();
    let OpenFiles {
        mapped: files,
        by_path,
    } = OpenFiles::read(&request, &named_files, &patterns, &mut selector.found);
    let indexed = present(request.indexed);
    let indexed: Vec<Candidate> = indexed.into_iter().map(Candidate::indexed).collect();
    let known = KnownFiles {
        mapped: &files,
        by_path: &by_path,
        is_of_processes: !request.processes.is_empty(),
        may_wait: request.may_wait,
    };
    let open = known.probes();
    // What one pattern selects is searched for all others, too: it is not looked at again when a process maps it.
    let (shared, alone): (Vec<_>, Vec<_>) = indexed.iter().partition(|file| {
        patterns
            .iter()
            .any(|pattern| known.attaches(pattern, file, &open))
    });
    for (event, named) in request.events.iter().zip(named) {
        selector.event = Some(event);
        let pattern = &event.pattern;
        if let Some(named) = named {
            let candidates: Vec<_> = named.iter().filter_map(Candidate::of_file).collect();
            selector.selection.named.extend(named);
            selector.pattern(pattern, candidates.iter())?;
            continue;
        }
        let waiting = selector.selection.waiting.len();
        let searched = files.iter().chain(&by_path).chain(shared.iter().copied());
        // The others have similar names at most.
        let others = alone.iter().copied();
        let others = others.filter(|file| !file.has(pattern));
        selector.pattern(pattern, searched.chain(others))?;
        let is_waiting = selector.selection.waiting.len() > waiting;
        if !request.processes.is_empty() && !is_waiting && !known.has(pattern) {
            let text = pattern.text().to_owned();
            selector.selection.not_mapped.push(text);
        }
    }
    let mut selection = selector.finish();
    let had_probes = !selection.probes.is_empty();
    selection.keep_pages(request.force);
    selection
        .refusals
        .extend(refuse_without_room(&mut selection.probes));
    // A file of some process of the host does not keep others from being recorded.
    let is_named = |event: &EventSelector| event.pattern.path().is_some();
    let is_sought =
        !request.may_wait || !request.processes.is_empty() || request.events.iter().all(is_named);
    if had_probes && selection.probes.is_empty() && is_sought {
        return Err(RecordError::Refused(selection.refusals));
    }
    selection.tried_nops = nop5::was_tried_and_sound();
    Ok(selection)
}

/// The open files and their probes.
struct OpenFiles {
    /// Those that processes map.
    mapped: Vec<Candidate>,
    /// Others, which patterns name.
    by_path: Vec<Candidate>,
}

impl OpenFiles {
    /// Reads the files of a request and those that patterns name. `found` takes those that nobody named.
    fn read(
        request: &Request<'_>,
        named: &[&Shared<ObjectFile>],
        patterns: &[&Pattern],
        found: &mut FoundFiles,
    ) -> Self {
        let named_ids: HashSet<FileId> = named.iter().map(|file| file.id()).collect();
        let pids = |file: &ObjectFile| {
            let pids = request.found.get(&file.id());
            pids.filter(|_| !named_ids.contains(&file.id()))
        };
        let files = request.files.iter();
        let found_files = files.filter_map(|file| Some((file, &**pids(file)?)));
        let mut read = found.read(found_files, patterns, request.places);
        let mapped = request.files.iter().filter_map(|file| match pids(file) {
            Some(_) => read.remove(&file.id()),
            None => Candidate::of_file(file),
        });
        let mapped: Vec<Candidate> = mapped.collect();
        let mut ids: HashSet<FileId> = mapped.iter().filter_map(Candidate::id).collect();
        let by_path = named.iter().filter(|file| ids.insert(file.id()));
        Self {
            by_path: by_path
                .filter_map(|file| Candidate::of_file(file))
                .collect(),
            mapped,
        }
    }
}

/// What to select in a file that appeared while recording.
pub struct FileRequest<'a> {
    /// The probes of the file.
    pub probes: FoundProbes,
    /// Patterns of probes.
    pub events: &'a [EventSelector],
    /// Names and types of arguments.
    pub schemas: &'a Schemas,
    /// Whether probes are attached where that may harm programs (`--force`).
    pub force: bool,
    /// How much may be attached.
    pub places: &'a Places,
    /// The account of the process that maps it; `None` without limits.
    pub account: Option<Account>,
}

/// Selects the probes of one file that appeared while recording. Without probes, the refusals say why.
pub fn select_in_file(file: &Shared<ObjectFile>, request: FileRequest<'_>) -> Selection {
    let events = request.events;
    let mut selector = Selector {
        force: request.force,
        starts_programs: true,
        is_late: true,
        ..Selector::new(request.schemas)
    };
    let candidate = Candidate::new(file, Shared::clone(&request.probes.binary));
    if let Some(account) = request.account {
        let patterns: Vec<&Pattern> = events.iter().map(|event| &event.pattern).collect();
        let (found, places) = (request.probes, request.places);
        selector.found = FoundFiles::of_file(file, found, &patterns, account, places);
    }
    for event in events {
        selector.event = Some(event);
        // A pattern whose probes are all refused is no error: others may select some.
        if let Err(RecordError::Refused(new)) =
            selector.pattern(&event.pattern, std::iter::once(&candidate))
        {
            new.into_iter()
                .for_each(|refusal| selector.refusals.add(refusal));
        }
    }
    let mut selection = selector.finish();
    selection.keep_pages(request.force);
    selection
}

/// Removes older builds of a path if the file that is now at the path is indexed.
fn present(mut indexed: Vec<Indexed>) -> Vec<Indexed> {
    let current = indexed.iter().filter(|indexed| indexed.is_current());
    let current: HashSet<PathBuf> = current.map(|indexed| indexed.binary.path.clone()).collect();
    indexed.retain(|indexed| indexed.is_current() || !current.contains(&indexed.binary.path));
    indexed
}

/// Opens the files of a path: if processes are traced, below the root directory of each of them.
fn named(path: &Path, processes: &[u32]) -> Result<Vec<Shared<ObjectFile>>, RecordError> {
    let wrong = |error: ElfError| RecordError::File {
        path: path.to_owned(),
        error,
    };
    let located = locate(path).map_err(RecordError::Find)?;
    let located = std::path::absolute(located).map_err(|error| wrong(error.into()))?;
    // A path through /proc already names the process.
    let below = (!located.starts_with("/proc")).then(|| located.strip_prefix("/").ok());
    let below = below.flatten();
    let unknown = Reader::of_unknown(Patience::Usual);
    let mut found: Vec<Shared<ObjectFile>> = Vec::new();
    let mut missing = None;
    for (pid, below) in processes.iter().filter_map(|pid| Some((pid, below?))) {
        let inside = live_directory(*pid).join("root").join(below);
        let reader = Reader::of_process(pid.cast_signed(), Patience::Usual);
        match ObjectFile::open_foreign(&inside, reader) {
            Ok(file) => found.push(Shared::new(file)),
            Err(error) => _ = missing.get_or_insert((*pid, error)),
        }
    }
    if found.is_empty() {
        match (missing, ObjectFile::open_foreign(&located, unknown)) {
            (None, Ok(file)) => found.push(Shared::new(file)),
            (None, Err(error)) => return Err(wrong(error)),
            (Some((pid, error)), opened) => {
                return Err(RecordError::FileOfProcess {
                    path: path.to_owned(),
                    pid,
                    error,
                    is_outside: opened.is_ok(),
                });
            }
        }
    }
    found.sort_by_key(|file| file.id());
    found.dedup();
    Ok(found)
}
