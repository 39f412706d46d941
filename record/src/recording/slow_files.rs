//! Files whose file systems did not answer at once: a thread opens them, for which the loop does not wait.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_buildid_cache::served::Patience;

use super::mapped_file::{Mapped, MappedFileId};

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "slow-files";
/// Maximum number of files that wait.
const MAX_FILES: usize = 256;
/// Time until a file is tried again, the first time; then twice as long, and at most so long.
const PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(320);

/// The files, and the thread.
#[derive(Debug)]
pub(super) struct SlowFiles {
    send: SyncSender<SlowFile>,
    found: Receiver<OpenedFile>,
    thread: JoinHandle<()>,
    /// The files that wait.
    known: HashSet<MappedFileId>,
    tries: Tries,
}

/// Numbers of files so far. They are tried in the order in which they were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    pub(super) added: u64,
    /// Those whose first try is over.
    pub(super) tried: u64,
}

/// A file, and who mapped it.
#[derive(Debug)]
pub(super) struct SlowFile {
    pub(super) id: MappedFileId,
    pub(super) mapped: Mapped,
}

/// What became of a file.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: SlowFile,
    pub(super) outcome: Result<ObjectFile, ElfError>,
    /// Whether it was tried for the first time.
    is_first: bool,
}

impl SlowFiles {
    /// Starts the thread; `None` if that is impossible.
    pub(super) fn start() -> Option<Self> {
        let (send, files) = sync_channel(MAX_FILES);
        let (opened, found) = channel();
        let thread = thread::Builder::new().name(NAME.to_owned());
        let thread = thread.spawn(move || run(&files, &opened)).ok()?;
        Some(Self {
            send,
            found,
            thread,
            known: HashSet::new(),
            tries: Tries::default(),
        })
    }

    /// Adds a file, unless it waits already. Returns `false` if there is no room.
    pub(super) fn add(&mut self, file: SlowFile) -> bool {
        if self.known.contains(&file.id) {
            return true;
        }
        let id = file.id;
        let is_added = self.known.len() < MAX_FILES && self.send.try_send(file).is_ok();
        if is_added {
            self.known.insert(id);
            self.tries.added += 1;
        }
        is_added
    }

    /// Numbers of files so far.
    pub(super) const fn tries(&self) -> Tries {
        self.tries
    }

    /// Whether a file waits.
    pub(super) fn has(&self, file: &MappedFileId) -> bool {
        self.known.contains(file)
    }

    /// What became of files since the last call. That a file system has not answered is said the first time.
    pub(super) fn take(&mut self) -> Vec<OpenedFile> {
        let found: Vec<_> = self.found.try_iter().collect();
        for opened in &found {
            self.tries.tried += u64::from(opened.is_first);
            if !matches!(&opened.outcome, Err(error) if error.is_timeout()) {
                self.known.remove(&opened.file.id);
            }
        }
        found
    }

    /// Ends the thread, which may take as long as an answer.
    pub(super) fn end(self) {
        drop(self.send);
        let _ = self.thread.join();
    }
}

/// A file that waits.
struct Waiting {
    file: SlowFile,
    due: Instant,
    pause: Duration,
    is_tried: bool,
}

fn run(files: &Receiver<SlowFile>, opened: &Sender<OpenedFile>) {
    let mut waiting: Vec<Waiting> = Vec::new();
    loop {
        let now = Instant::now();
        let first = waiting.iter().map(|waiting| waiting.due).min();
        let time = first.map_or(MAX_PAUSE, |due| due.saturating_duration_since(now));
        match files.recv_timeout(time) {
            Ok(file) => waiting.push(Waiting {
                file,
                due: now,
                pause: PAUSE,
                is_tried: false,
            }),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        let Some(at) = waiting.iter().position(|waiting| waiting.due <= now) else {
            continue;
        };
        let mut tried = waiting.remove(at);
        let outcome = tried.file.mapped.open(Patience::Usual);
        let is_timeout = matches!(&outcome, Err(error) if error.is_timeout());
        let is_first = !std::mem::replace(&mut tried.is_tried, true);
        let file = SlowFile {
            id: tried.file.id,
            mapped: tried.file.mapped.clone(),
        };
        let outcome = OpenedFile {
            file,
            outcome,
            is_first,
        };
        if (!is_timeout || is_first) && opened.send(outcome).is_err() {
            return;
        }
        if is_timeout {
            tried.due = Instant::now() + tried.pause;
            tried.pause = MAX_PAUSE.min(tried.pause * 2);
            waiting.push(tried);
        }
    }
}
