//! Followed files that no process maps any more: their probes are detached, so that their places are free for others.
//!
//! A file that no process maps at one look is forgotten by what reads process records, so that each further mapping of it is reported. If none was
//! until the next look, and no process maps it then, its probes are detached: after more looks if some process could not be read. A look costs at most a
//! twentieth of a CPU: most files are still mapped by the process that was seen first.

use std::collections::{HashMap, HashSet};
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::process::code_mappings;
use usdtrec_kernel::host::capabilities::may_read_processes;

use crate::recording::mapped_file::MappedFileId;

/// Shortest time between two looks, and its ratio to what a look took.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_RATIO: u32 = 20;
/// In a container or a sandbox it may be one that nobody may look at; it is no program that a user starts.
const FIRST_PROCESS: u32 = 1;
/// Number of looks that must find nobody.
const LOOKS: u32 = 2;
/// The same, if some process could not be read at any of them: anybody can have a process that never can.
const LATE_LOOKS: u32 = 6;

/// Number of followed files up to which all keep their places, unless another file had none: what is executed again has its probes sooner if its
/// file was not released (`recording/watched_files`).
const MIN_FILES: usize = 64;

/// The files that are looked for.
#[derive(Debug)]
pub(super) struct UnmappedFiles {
    files: HashMap<MappedFileId, State>,
    /// Whether there was no place for a file.
    are_places_scarce: bool,
    look: Option<JoinHandle<Looked>>,
    next: Instant,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// A process that mapped it.
    pid: i32,
    /// How it appears among the mappings of processes.
    identity: MappedInode,
    /// Number of looks at which no process had it, since one has mapped it.
    looks: u32,
    /// Number of those that could not read all processes.
    late: u32,
}

impl State {
    /// Whether enough looks have found nobody.
    const fn is_unmapped(&self) -> bool {
        self.looks - self.late >= LOOKS || self.looks >= LATE_LOOKS
    }
}

#[derive(Debug)]
struct Looked {
    unmapped: HashSet<MappedFileId>,
    /// Whether some process could not be read.
    is_late: bool,
    taken: Duration,
}

/// What follows from a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Files to be forgotten.
    pub(super) unmapped: Vec<MappedFileId>,
    /// Files whose probes are to be detached. They are looked for no more.
    pub(super) released: Vec<MappedFileId>,
}

impl UnmappedFiles {
    pub(super) fn new() -> Self {
        Self {
            files: HashMap::new(),
            are_places_scarce: false,
            look: None,
            next: Instant::now() + PAUSE,
        }
    }

    /// A file was attached that a process maps.
    pub(super) fn add(&mut self, file: MappedFileId, pid: i32, identity: MappedInode) {
        let state = State {
            pid,
            identity,
            looks: 0,
            late: 0,
        };
        self.files.insert(file, state);
    }

    /// A process has mapped a file that is attached.
    pub(super) fn note_mapped(&mut self, file: MappedFileId, pid: i32) {
        if let Some(state) = self.files.get_mut(&file) {
            (state.pid, state.looks, state.late) = (pid, 0, 0);
        }
    }

    /// A file is not looked for any more.
    pub(super) fn remove(&mut self, file: MappedFileId) {
        self.files.remove(&file);
    }

    /// There was no place for a file.
    pub(super) const fn note_no_place(&mut self) {
        self.are_places_scarce = true;
    }

    /// When to call [`look`](Self::look) next; `None` if there is nothing to look for.
    pub(super) fn due(&self) -> Option<Instant> {
        const STEP: Duration = Duration::from_millis(200);
        match self.look {
            Some(_) => Some(Instant::now() + STEP),
            None => {
                let least = if self.are_places_scarce { 1 } else { MIN_FILES };
                (self.files.len() >= least).then_some(self.next)
            }
        }
    }

    /// Begins a look that is due, in a thread of its own, or takes what one has found.
    pub(super) fn look(&mut self) -> Outcome {
        if let Some(look) = self.look.take_if(|look| look.is_finished()) {
            let looked = look.join().ok();
            let taken = looked.as_ref().map_or(PAUSE, |looked| looked.taken);
            self.next = Instant::now() + PAUSE.max(taken * PAUSE_RATIO);
            return looked.map_or_else(Outcome::default, |looked| self.take(&looked));
        }
        if self.look.is_none() && Instant::now() >= self.next {
            let files = self.files.iter();
            let files: Vec<(MappedFileId, State)> =
                files.map(|(file, state)| (*file, *state)).collect();
            let name = "unmapped".to_owned();
            let look = thread::Builder::new()
                .name(name)
                .spawn(move || look(&files));
            self.next = Instant::now() + PAUSE;
            self.look = look.ok();
        }
        Outcome::default()
    }

    fn take(&mut self, looked: &Looked) -> Outcome {
        let mut outcome = Outcome::default();
        self.files.retain(|file, state| {
            if !looked.unmapped.contains(file) {
                (state.looks, state.late) = (0, 0);
                return true;
            }
            state.looks += 1;
            state.late += u32::from(looked.is_late);
            if state.looks == 1 {
                outcome.unmapped.push(*file);
            }
            let is_released = state.is_unmapped();
            if is_released {
                outcome.released.push(*file);
            }
            !is_released
        });
        outcome
    }
}

/// Finds the files that no process maps: first in the processes that mapped them, then in all.
fn look(files: &[(MappedFileId, State)]) -> Looked {
    let begun = Instant::now();
    let files_left = files.iter().map(|(file, state)| (state.identity, *file));
    let mut left: HashMap<MappedInode, MappedFileId> = files_left.collect();
    let first: HashSet<u32> = files
        .iter()
        .filter_map(|(_, state)| u32::try_from(state.pid).ok())
        .collect();
    let all = || {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let may_read = may_read_processes();
    let [mut is_denied, mut is_late] = [false; 2];
    for pid in first.into_iter().chain(std::iter::once_with(all).flatten()) {
        if left.is_empty() {
            break;
        }
        match code_mappings(pid) {
            Ok(mappings) => {
                for mapping in mappings {
                    left.remove(&mapping.mapped_inode());
                }
            }
            Err(error) if pid == FIRST_PROCESS || has_ended(pid, &error) => {}
            Err(error) => {
                let is_own_lack = error.kind() == io::ErrorKind::PermissionDenied && !may_read;
                is_denied |= is_own_lack;
                is_late |= !is_own_lack;
            }
        }
    }
    // Those that may not be read without a capability may have any of them: they are most processes.
    let unmapped = left.into_values().filter(|_| !is_denied).collect();
    Looked {
        unmapped,
        is_late,
        taken: begun.elapsed(),
    }
}

/// Whether a process whose mappings could not be read has ended.
fn has_ended(pid: u32, error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH) || std::fs::metadata(format!("/proc/{pid}")).is_err()
}

#[cfg(test)]
mod tests {
    use usdtrec_buildid_cache::elf::ObjectFile;
    use usdtrec_kernel::host::identity;

    use super::*;

    fn own_program() -> MappedInode {
        let path = std::env::current_exe().unwrap();
        identity::of_file(&ObjectFile::open(&path).unwrap()).unwrap()
    }

    fn looked(files: &[u64], is_late: bool) -> Looked {
        Looked {
            unmapped: files.iter().copied().map(MappedFileId::numbered).collect(),
            is_late,
            taken: Duration::ZERO,
        }
    }

    #[test]
    fn a_file_is_released_that_nobody_maps_at_two_looks_and_between_them() {
        let file = MappedFileId::numbered;
        let mut files = UnmappedFiles::new();
        (1..4).for_each(|number| files.add(file(number), 7, own_program()));
        let outcome = files.take(&looked(&[1, 2, 3], false));
        assert_eq!((outcome.unmapped.len(), outcome.released.len()), (3, 0));
        files.note_mapped(file(2), 8);
        let outcome = files.take(&looked(&[1, 2], false));
        assert_eq!(
            (outcome.unmapped, outcome.released),
            (vec![file(2)], vec![file(1)])
        );
        let outcome = files.take(&looked(&[1, 3], false));
        assert_eq!(
            (outcome.unmapped, outcome.released),
            (vec![file(3)], vec![])
        );
    }

    /// One process that can never be read does not keep files for ever.
    #[test]
    fn a_file_is_released_after_more_looks_that_could_not_read_all_processes() {
        let file = MappedFileId::numbered(1);
        let mut files = UnmappedFiles::new();
        let mut released = |late: &[bool]| {
            files.add(file, 7, own_program());
            let looks = late.iter().map(|late| files.take(&looked(&[1], *late)));
            let outcomes: Vec<Outcome> = looks.collect();
            let reported = outcomes.iter().filter(|one| one.unmapped == [file]).count();
            assert_eq!(reported, 1, "once");
            outcomes.iter().any(|outcome| outcome.released == [file])
        };
        assert!(released(&[true; LATE_LOOKS as usize]));
        assert!(!released(&[true; LATE_LOOKS as usize - 1]));
        assert!(released(&[true, false, true, false]));
        assert!(!released(&[true, false, true]));
    }

    #[test]
    fn a_look_finds_what_a_process_maps() {
        let state = State {
            pid: std::process::id().cast_signed(),
            identity: own_program(),
            looks: 0,
            late: 0,
        };
        let looked = look(&[(MappedFileId::numbered(1), state)]);
        assert!(looked.unmapped.is_empty());
    }
}
