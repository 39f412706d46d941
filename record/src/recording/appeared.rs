//! Files with selected probes that processes first map while recording: a library that is loaded, or a program that was replaced by a new
//! version. They are not attached to, but reported.

use std::collections::HashSet;
use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::Pattern;
use usdtrec_format::escape::shown;

use crate::recording::build_ids::NewFile;
use crate::recording::session::Session;
use crate::recording::target::Target;

/// Maximum number of files that are reported individually.
const SHOWN: usize = 6;
/// Maximum number of files that are read in one recording: a process may map new files for ever.
const MAX_FILES: usize = 4096;
/// Maximum number of files that wait to be read.
const WAITING: usize = 64;
/// Ratio of the pause after reading a file to its duration: reading takes at most a fifth of a CPU.
const PAUSE: u32 = 4;
/// Maximum time until the end of the recording is noticed.
const STEP: Duration = Duration::from_millis(20);
/// How long waiting files are read after the recording has ended.
const END_TIME: Duration = Duration::from_secs(2);

/// A file with selected probes that was first mapped while recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appeared {
    /// The process that mapped it.
    pub pid: i32,
    /// Path of the file, as the process sees it.
    pub path: PathBuf,
    /// The pattern that selects some of its probes.
    pub pattern: String,
    /// How a further recording includes it.
    pub remedy: Remedy,
}

/// How a further recording includes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Found by the same selection.
    Again,
    /// By its path, with the pattern.
    ByPath,
    /// By the process that maps it: the recorder cannot open it by path.
    ByProcess,
}

impl fmt::Display for Appeared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid, path, pattern, ..
        } = self;
        let path = shown(path);
        write!(
            f,
            "process {pid} maps a file with probes that match '{pattern}' and that was not there when recording began: {path}"
        )
    }
}

/// Files that were first mapped while recording: the first few, and their number.
#[derive(Clone, Debug, Default)]
pub struct AppearedFiles {
    /// The first files, at most 6.
    pub first: Vec<Appeared>,
    /// Number of all files.
    pub count: usize,
}

impl AppearedFiles {
    /// A message about all files; `None` if there are none.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let paths = self.first.iter().map(|file| shown(&file.path).to_string());
        let paths: Vec<String> = paths.collect();
        let more = match self.count.saturating_sub(paths.len()) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let files = match self.count {
            0 => return None,
            1 => "a file",
            _ => "files",
        };
        Some(format!(
            "not recorded: probes of {files} that processes began to map while recording: {}{more}",
            paths.join(", ")
        ))
    }
}

/// Reads the files that processes begin to map, in a thread of its own: a file may be large, or on a slow file system.
#[derive(Debug)]
pub(crate) struct Watcher {
    /// Paths of the files that are recorded.
    recorded: HashSet<PathBuf>,
    /// Whether files of other paths are read.
    any_path: bool,
    queue: SyncSender<NewFile>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_ending: AtomicBool,
    found: Mutex<AppearedFiles>,
}

impl Shared {
    fn found(&self) -> MutexGuard<'_, AppearedFiles> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    /// Creates the watcher of a session. Only for named processes it is known what they mapped before.
    pub(crate) fn for_session(session: &Session) -> Self {
        let recorded = session.probes().iter().map(|probe| &probe.path);
        let recorded: HashSet<PathBuf> = recorded.map(|path| without_mark(path)).collect();
        let target = &session.options.target;
        let (queue, files) = sync_channel(WAITING);
        let shared = Arc::default();
        let search = Search {
            patterns: session.options.patterns.clone(),
            seen: session
                .probes()
                .iter()
                .map(|probe| probe.file().id())
                .collect(),
            recorded: recorded.clone(),
            names_processes: matches!(target, Target::Processes(_) | Target::Threads(_)),
            shared: Arc::clone(&shared),
        };
        Self {
            recorded,
            any_path: !matches!(target, Target::All),
            queue,
            shared,
            thread: Some(std::thread::spawn(move || search.run(&files))),
        }
    }

    /// Queues files that were mapped. Files that do not fit into the queue are not read.
    pub(crate) fn take(&self, files: Vec<NewFile>) {
        for file in files {
            if self.any_path || self.recorded.contains(&file.path) {
                let _ = self.queue.try_send(file);
            }
        }
    }

    /// The files found so far.
    pub(crate) fn found(&self) -> AppearedFiles {
        self.shared.found().clone()
    }

    /// All files found, after the last one was queued. A file that cannot be read in time is omitted.
    pub(crate) fn finish(mut self) -> AppearedFiles {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        let (shared, thread) = (Arc::clone(&self.shared), self.thread.take());
        drop(self);
        let begun = Instant::now();
        while thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && begun.elapsed() < END_TIME
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        mem::take(&mut shared.found())
    }
}

/// The state of the thread.
struct Search {
    patterns: Vec<Pattern>,
    /// Files that are recorded or were read.
    seen: HashSet<FileId>,
    recorded: HashSet<PathBuf>,
    names_processes: bool,
    shared: Arc<Shared>,
}

impl Search {
    fn run(mut self, files: &Receiver<NewFile>) {
        let mut looks = 0;
        for file in files {
            if looks == MAX_FILES || !self.seen.insert(file.object.id()) {
                continue;
            }
            looks += 1;
            let begun = Instant::now();
            if let Some(appeared) = self.look(&file) {
                let mut found = self.shared.found();
                found.count += 1;
                if found.first.len() < SHOWN {
                    found.first.push(appeared);
                }
            }
            let until = Instant::now() + begun.elapsed() * PAUSE;
            while Instant::now() < until && !self.shared.is_ending.load(Ordering::Relaxed) {
                std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
            }
        }
    }

    /// Checks whether a file has selected probes.
    fn look(&self, file: &NewFile) -> Option<Appeared> {
        let is_recorded = self.recorded.contains(&file.path);
        let binary = file.object.binary().ok()?;
        let is_asked = |pattern: &&Pattern| {
            let mut probes = binary.probes.iter();
            (pattern.path().is_none() || is_recorded)
                && pattern.fits_build(binary.build_id)
                && probes.any(|probe| pattern.matches(&probe.provider, &probe.name))
        };
        let pattern = self.patterns.iter().find(is_asked)?;
        let is_reached = FileId::from_path(&file.path) == Some(file.object.id());
        Some(Appeared {
            pid: file.pid,
            path: file.path.clone(),
            pattern: pattern.text().to_owned(),
            remedy: match is_reached {
                _ if self.names_processes => Remedy::Again,
                false => Remedy::ByProcess,
                true if pattern.path().is_some() => Remedy::Again,
                true => Remedy::ByPath,
            },
        })
    }
}

/// The path without the mark of a deleted file.
fn without_mark(path: &Path) -> PathBuf {
    let text = path
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"));
    text.map_or_else(|| path.to_owned(), PathBuf::from)
}
