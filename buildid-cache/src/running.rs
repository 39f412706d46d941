//! The files with probes that the processes of this host run, in whatever mount namespace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rustix::process::{Resource, getrlimit};

use crate::account::Account;
use crate::elf::{FileId, NOTE_BYTES};
use crate::file_mapping::{DeviceNumber, FileMapping, MappedInode};
use crate::process::{MappedFile, OpenProcess};
use crate::served;

/// Maximum number of different files that are read of what the processes of one user map. Any user can map any number of files.
pub const MAX_FILES_OF_USER: usize = 10_000;

/// Number of processes whose mappings are in memory at a time. Each may have 64 MiB of them.
const PROCESSES_AT_ONCE: usize = 8;

/// Maximum number of files of a user that are distinguished of those that are not read.
const MAX_UNREAD: usize = 1 << 18;

/// Number of descriptors that files which stay open leave for everything else.
const DESCRIPTORS_KEPT: u64 = 256;

/// Maximum number of processes by which a file is opened.
const MAX_TRIES: usize = 8;

/// Which probes of running files are kept.
pub struct KeptProbes<'a> {
    /// Whether a probe is, by provider and name.
    pub keep: &'a (dyn Fn(&str, &str) -> bool + Sync),
    /// Maximum number of probes of a file.
    pub of_file: usize,
    /// Maximum size of the notes of all files of a user, bytes. Further files are not read.
    pub notes_of_user: u64,
}

impl KeptProbes<'_> {
    /// All.
    pub const ALL: Self = Self {
        keep: &|_, _| true,
        of_file: usize::MAX,
        notes_of_user: 4 * NOTE_BYTES,
    };
}

/// A file with probes that processes run.
#[derive(Clone, Debug)]
pub struct RunningFile {
    /// The file.
    pub mapped: MappedFile,
    /// The processes that map its code, in ascending order.
    pub processes: Vec<u32>,
}

/// What the processes of this host run.
#[derive(Debug, Default)]
pub struct Running {
    /// Files with probes, each inode once, in the order of their paths.
    pub files: Vec<RunningFile>,
    /// All files that were looked into, also those without probes.
    pub inodes: HashSet<MappedInode>,
    /// Number of processes whose mappings were read.
    pub processes: usize,
    /// The processes whose mappings may not be read (proc_pid_maps(5): those of other users).
    pub denied: Vec<u32>,
    /// The processes that have more mappings than are read.
    pub oversized: Vec<u32>,
    /// Number of files that could not be read, or not wholly.
    pub unreadable: usize,
    /// The processes whose mappings could not be read in time.
    pub unanswered: Vec<u32>,
    /// Users with more than [`MAX_FILES_OF_USER`] files, and how many of each were not read.
    pub unread: BTreeMap<Account, usize>,
}

/// Reads the probes of all files whose code a process of this host maps, other than this process and its helpers.
///
/// # Errors
/// `/proc` cannot be read.
pub fn running(kept: &KeptProbes<'_>) -> io::Result<Running> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    let helpers = served::pids();
    pids.retain(|pid| *pid != std::process::id() && !helpers.contains(pid));
    pids.sort_unstable();
    let mut running = Running::default();
    let mut wanted = Wanted::default();
    for pids in pids.chunks(PROCESSES_AT_ONCE) {
        let looked: Vec<_> = pids.par_iter().map(|&pid| (pid, look(pid))).collect();
        for (pid, outcome) in looked {
            match outcome.map_err(|error| error.kind()) {
                Ok(process) => {
                    running.processes += 1;
                    wanted.add(pid, process);
                }
                Err(io::ErrorKind::PermissionDenied) => running.denied.push(pid),
                Err(io::ErrorKind::FileTooLarge) => running.oversized.push(pid),
                Err(io::ErrorKind::TimedOut) => running.unanswered.push(pid),
                // It has ended.
                Err(_) => {}
            }
        }
    }
    let unread = wanted.unread.iter();
    running.unread = unread
        .map(|(user, files)| (*user, files.number()))
        .collect();
    let files: Vec<WantedFile> = wanted.files.into_values().collect();
    let open = OpenFiles::default();
    let read = files.into_par_iter().map(|file| file.read(&open, kept));
    let read: Vec<ReadFile> = read.collect();
    let mut found: HashMap<FileId, RunningFile> = HashMap::new();
    for ReadFile { inode, outcome } in read {
        running.inodes.extend(inode);
        match outcome {
            Outcome::Probes(file) => {
                running.unreadable += usize::from(!file.mapped.is_whole);
                let id = file.mapped.file.id();
                match found.get_mut(&id) {
                    None => _ = found.insert(id, file),
                    Some(known) => known.processes.extend(file.processes),
                }
            }
            Outcome::Nothing => {}
            Outcome::Unreadable => running.unreadable += 1,
        }
    }
    running.files = found.into_values().collect();
    for file in &mut running.files {
        file.processes.sort_unstable();
        file.processes.dedup();
    }
    running.files.sort_by(|a, b| {
        let key = |file: &RunningFile| (file.mapped.file.path().to_owned(), file.mapped.file.id());
        key(a).cmp(&key(b))
    });
    Ok(running)
}

/// A process, and the files whose code it maps.
struct Process {
    account: Account,
    mount_namespace: Option<u64>,
    mappings: Vec<FileMapping>,
}

/// Reads what a process maps.
fn look(pid: u32) -> io::Result<Process> {
    let process = OpenProcess::open(pid)?;
    Ok(Process {
        account: process.account()?,
        mount_namespace: process.mount_namespace(),
        mappings: process.code_mappings()?,
    })
}

/// A file as it appears in the mappings of processes. Different files may have the same device and inode there (subvolumes of btrfs), but not
/// the same path in one mount namespace, too.
#[derive(PartialEq, Eq, Hash)]
struct MappedName {
    mount_namespace: Option<u64>,
    device: DeviceNumber,
    inode: u64,
    path: std::path::PathBuf,
}

/// A file to read.
#[derive(Default)]
struct WantedFile {
    /// That of the first process that maps it.
    account: Account,
    /// The processes that map it.
    processes: Vec<u32>,
    /// Mappings of the first of them: one may have ended when the file is opened.
    mapped_by: Vec<(u32, FileMapping)>,
}

/// The files to read.
#[derive(Default)]
struct Wanted {
    files: HashMap<MappedName, WantedFile>,
    /// Number of files of each user.
    of_user: HashMap<Account, usize>,
    /// The files of each user that are not read.
    unread: HashMap<Account, LeftOutFiles>,
}

/// Files that are not read.
#[derive(Default)]
struct LeftOutFiles {
    /// Hashes of their names: a name may have 4 KB.
    hashes: HashSet<u64>,
    /// Number of mappings of further ones.
    more: usize,
}

impl LeftOutFiles {
    fn add(&mut self, name: &MappedName) {
        if self.hashes.len() >= MAX_UNREAD {
            self.more += 1;
            return;
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.hashes.insert(hasher.finish());
    }

    fn number(&self) -> usize {
        self.hashes.len() + self.more
    }
}

impl Wanted {
    fn add(&mut self, pid: u32, process: Process) {
        for mapping in process.mappings {
            let name = MappedName {
                mount_namespace: process.mount_namespace,
                device: mapping.device,
                inode: mapping.inode,
                path: mapping.path.clone(),
            };
            if !self.files.contains_key(&name) {
                let count = self.of_user.entry(process.account).or_default();
                if *count == MAX_FILES_OF_USER {
                    self.unread.entry(process.account).or_default().add(&name);
                    continue;
                }
                *count += 1;
            }
            let file = self.files.entry(name).or_insert_with(|| WantedFile {
                account: process.account,
                ..WantedFile::default()
            });
            if file.processes.last() != Some(&pid) {
                file.processes.push(pid);
                if file.mapped_by.len() < MAX_TRIES {
                    file.mapped_by.push((pid, mapping));
                }
            }
        }
    }
}

/// A file that was to be read.
struct ReadFile {
    /// `None` if no process maps it any more.
    inode: Option<MappedInode>,
    outcome: Outcome,
}

/// Files that stay open, by user. Those of one user are never more than what is left for all others.
#[derive(Default)]
struct OpenFiles(Mutex<HashMap<Account, OfUser>>);

#[derive(Default)]
struct OfUser {
    files: u64,
    /// Size of the notes whose probes are kept, bytes.
    notes: u64,
}

impl OpenFiles {
    /// Whether a file of a user may stay open, with so many bytes of notes, if `most_notes` may be.
    fn admit(&self, user: Account, notes: u64, most_notes: u64) -> bool {
        let most = getrlimit(Resource::Nofile).current;
        let most = most.map_or(u64::MAX, |most| most.saturating_sub(DESCRIPTORS_KEPT));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: u64 = open.values().map(|user| user.files).sum();
        let own = open.entry(user).or_default();
        let notes = own.notes.saturating_add(notes);
        let has_room = own.files < most.saturating_sub(all) && notes <= most_notes;
        if has_room {
            own.files += 1;
            own.notes = notes;
        }
        has_room
    }
}

/// What became of a file.
enum Outcome {
    /// It has probes.
    Probes(RunningFile),
    /// It has none, is no ELF file, or no process maps it any more.
    Nothing,
    /// It cannot be read.
    Unreadable,
}

impl WantedFile {
    /// Reads it by the first process that still maps it.
    fn read(self, open: &OpenFiles, kept: &KeptProbes<'_>) -> ReadFile {
        let mut file = ReadFile {
            inode: None,
            outcome: Outcome::Nothing,
        };
        for (pid, mapping) in &self.mapped_by {
            let Ok(process) = OpenProcess::open(*pid) else {
                continue;
            };
            let inode = Some(mapping.mapped_inode());
            let mut number = 0;
            let mut has_probes = false;
            let read = process.read_within(mapping, |provider, name| {
                has_probes = true;
                let is_kept = number < kept.of_file && (kept.keep)(provider, name);
                number += usize::from(is_kept);
                is_kept
            });
            let outcome = match read {
                Ok(mapped) if !has_probes && mapped.has_nothing() => Outcome::Nothing,
                Ok(mapped)
                    if !open.admit(
                        self.account,
                        mapped.file.note_bytes().min(NOTE_BYTES),
                        kept.notes_of_user,
                    ) =>
                {
                    Outcome::Unreadable
                }
                Ok(mapped) => Outcome::Probes(RunningFile {
                    mapped,
                    processes: self.processes,
                }),
                Err(error) if error.is_other_file() => Outcome::Nothing,
                Err(error) => {
                    // Else it has ended, or unmapped the file.
                    if process.has(mapping) {
                        file = ReadFile {
                            // Its file system may answer later.
                            inode: inode.filter(|_| !error.is_timeout()),
                            outcome: Outcome::Unreadable,
                        };
                    }
                    continue;
                }
            };
            return ReadFile { inode, outcome };
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executable mappings of files with these numbers.
    fn process(files: std::ops::Range<usize>) -> Process {
        let line = |file: usize| format!("1000-2000 r-xp 00000000 fe:01 {} /{file}", file + 1);
        let mappings = files.map(|file| FileMapping::parse(line(file).as_bytes()));
        Process {
            account: Account::of_user(1000),
            mount_namespace: None,
            mappings: mappings.map(Option::unwrap).collect(),
        }
    }

    #[test]
    fn open_files_of_a_user_leave_room_for_others() {
        let open = OpenFiles::default();
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        let [one, other] = [1, 2].map(Account::of_user);
        let taken = (0..most).take_while(|_| open.admit(one, 0, 0)).count() as u64;
        assert!(taken < most / 2, "{taken} of {most}");
        assert!(open.admit(other, 8, 10));
        assert!(!open.admit(other, 3, 10));
    }

    /// Many processes may map a file that is left out.
    #[test]
    fn files_that_are_left_out_are_counted_once() {
        let mut wanted = Wanted::default();
        wanted.add(1, process(0..MAX_FILES_OF_USER));
        assert!(wanted.unread.is_empty());
        for pid in 2..5 {
            wanted.add(pid, process(MAX_FILES_OF_USER - 1..MAX_FILES_OF_USER + 2));
        }
        assert_eq!(wanted.files.len(), MAX_FILES_OF_USER);
        assert_eq!(wanted.unread[&Account::of_user(1000)].number(), 2);
    }
}
