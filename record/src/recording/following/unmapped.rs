//! Followed files that no process maps any more: their probes are detached, so that their places are free for others.
//!
//! A file that no process maps at one look is forgotten by what reads process records, so that each further mapping of it is reported. If none was
//! until the next look, and no process maps it then, its probes are detached. A look costs at most a twentieth of a CPU: most files are still mapped by the
//! process that was seen first.

use std::collections::{HashMap, HashSet};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::process::code_mappings;

use crate::recording::mapped_file::MappedFileId;

/// Shortest time between two looks, and its ratio to what a look took.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_RATIO: u32 = 20;
/// In a container or a sandbox it may be one that nobody may look at; it is no program that a user starts.
const FIRST_PROCESS: u32 = 1;

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
    /// Whether no process had it at the last look, and none has mapped it since.
    is_unmapped: bool,
}

#[derive(Debug)]
struct Looked {
    unmapped: Vec<MappedFileId>,
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
            is_unmapped: false,
        };
        self.files.insert(file, state);
    }

    /// A process has mapped a file that is attached.
    pub(super) fn note_mapped(&mut self, file: MappedFileId, pid: i32) {
        if let Some(state) = self.files.get_mut(&file) {
            (state.pid, state.is_unmapped) = (pid, false);
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
            return looked.map_or_else(Outcome::default, |looked| self.take(&looked.unmapped));
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

    fn take(&mut self, unmapped: &[MappedFileId]) -> Outcome {
        let mut outcome = Outcome::default();
        for file in unmapped {
            match self.files.get_mut(file) {
                Some(State {
                    is_unmapped: true, ..
                }) => {
                    self.files.remove(file);
                    outcome.released.push(*file);
                }
                Some(state) => {
                    state.is_unmapped = true;
                    outcome.unmapped.push(*file);
                }
                None => {}
            }
        }
        let gone: HashSet<&MappedFileId> = unmapped.iter().collect();
        for (_, state) in self
            .files
            .iter_mut()
            .filter(|(file, _)| !gone.contains(file))
        {
            state.is_unmapped = false;
        }
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
    let mut unread = false;
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
            // It has ended.
            Err(error) => {
                unread |= pid != FIRST_PROCESS
                    && error.raw_os_error() != Some(libc::ESRCH)
                    && std::fs::metadata(format!("/proc/{pid}")).is_ok();
            }
        }
    }
    // A process whose mappings cannot be read may have any of them.
    let unmapped = left.into_values().filter(|_| !unread).collect();
    Looked {
        unmapped,
        taken: begun.elapsed(),
    }
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

    #[test]
    fn a_file_is_released_that_nobody_maps_at_two_looks_and_between_them() {
        let file = MappedFileId::numbered;
        let mut files = UnmappedFiles::new();
        (1..4).for_each(|number| files.add(file(number), 7, own_program()));
        let outcome = files.take(&[file(1), file(2), file(3)]);
        assert_eq!((outcome.unmapped.len(), outcome.released.len()), (3, 0));
        files.note_mapped(file(2), 8);
        let outcome = files.take(&[file(1), file(2)]);
        assert_eq!(
            (outcome.unmapped, outcome.released),
            (vec![file(2)], vec![file(1)])
        );
        let outcome = files.take(&[file(1), file(3)]);
        assert_eq!(
            (outcome.unmapped, outcome.released),
            (vec![file(3)], vec![])
        );
    }

    #[test]
    fn a_look_finds_what_a_process_maps() {
        let state = State {
            pid: std::process::id().cast_signed(),
            identity: own_program(),
            is_unmapped: false,
        };
        let looked = look(&[(MappedFileId::numbered(1), state)]);
        assert_eq!(looked.unmapped, []);
    }
}
