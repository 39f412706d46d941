//! Files whose probes are in all processes: who only reads them is named, and those that nobody executes have no probes.
//!
//! The kernel inserts breakpoints in each private mapping of a file, also of a program that reads it to write what it has read: `git add`, `dwz` and
//! `llvm-strip` store programs with breakpoints. So each process that maps such a file and does not execute it is a shortfall, once for each
//! program and file. And files that were found (a pattern without a path selected them) are detached when nobody has executed them for
//! [`IDLE_TIME`](keeper::IDLE_TIME), until somebody does. Files that were named keep their probes.
//!
//! Where the kernel allows it, a program sees the mappings, and holds the thread that executes a detached file until it is attached again
//! ([`WatchedFiles`](usdtrec_attach::engine::WatchedFiles)). A thread of the recorder ([`keeper`]) decides, and looks for processes in `/proc` ([`search`]):
//! before it detaches, and for what the program cannot see.

mod file;
pub(crate) mod keeper;

use std::io::{self, PipeWriter, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::elf::ObjectFile;

use self::file::ProbedFile;
use self::keeper::{FilesChange, Keeper};
use crate::recording::session::Session;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "files";
/// How long the end of a recording waits for the thread.
const END_TIME: Duration = Duration::from_secs(2);

/// The thread. Dropping this ends it.
#[derive(Debug, Default)]
pub(super) struct FileWatch {
    changes: Option<Sender<FilesChange>>,
    /// Wakes the thread.
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl FileWatch {
    /// Starts the thread, with the files that the recording begins with. There is none if the probes are in recorded processes only, or the recorder
    /// drops its capabilities.
    ///
    /// # Errors
    /// The errors of starting the thread.
    pub(super) fn start(session: &mut Session) -> io::Result<Self> {
        let watched = session.attached.engine.take_watched_files();
        let is_program = session.attached.engine.follows();
        if session.options.following.is_off || (is_program && watched.is_none()) {
            return Ok(Self::default());
        }
        // Without the program, mappings are seen in /proc.
        let watched = watched.and_then(Result::ok);
        let (changes, take_changes) = channel();
        let (woken, wake) = io::pipe()?;
        let shortfalls = session.shortfalls.clone();
        let keeper = Keeper::new(watched, shortfalls, take_changes, woken);
        let thread = thread::Builder::new().name(NAME.to_owned());
        let thread = thread.spawn(move || keeper.run())?;
        let mut this = Self {
            changes: Some(changes),
            wake: Some(wake),
            thread: Some(thread),
        };
        let all = 0..session.probes().len();
        this.add(session, all);
        Ok(this)
    }

    /// Adds the files of probes that are attached.
    pub(super) fn add(&mut self, session: &Session, probes: Range<usize>) {
        self.tell(|| FilesChange::Added(ProbedFile::of_probes(session, probes)));
    }

    /// The probes of a file are detached for good: nobody is held for it, and its readers are not named.
    pub(super) fn release(&mut self, object: &Arc<ObjectFile>) {
        self.tell(|| FilesChange::Released(Arc::clone(object)));
    }

    fn tell(&mut self, change: impl FnOnce() -> FilesChange) {
        if let (Some(changes), Some(wake)) = (&self.changes, &mut self.wake) {
            // It ends when the recording does.
            let _ = changes.send(change());
            let _ = wake.write_all(&[0]);
        }
    }

    /// Ends the thread: nothing is detached or attached any more, and no process is held.
    pub(super) fn end(&mut self) {
        self.changes = None;
        self.wake = None;
        let begun = Instant::now();
        let thread = self.thread.take();
        while thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && begun.elapsed() < END_TIME
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.end();
    }
}
