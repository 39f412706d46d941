//! Files with selected probes that processes begin to map while recording: a library that is loaded, a program that was replaced by a new
//! version, a file without a name. Their probes are attached then.
//!
//! The loop of the recording sees mappings in the process records, and opens each file once (`build_ids.rs`). Reading its notes, planning and
//! attaching are done by a thread ([`search`]), which takes the files of users in turn ([`queue`]) and within limits
//! ([`places`](usdtrec_attach::places)), since any user can map any file. What it has attached is added to the recording by the loop ([`planting`]), between two passes.

mod added_file;
mod held_mappings;
mod origin;
mod planting;
mod queue;
mod reports;
mod search;
pub(super) mod settings;
mod unmapped;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use usdtrec_attach::engine::NewMapping;
use usdtrec_attach::places::Account;
use usdtrec_buildid_cache::MappedInode;
use usdtrec_kernel::trace_clock;
use usdtrec_watch::shortfalls::Shortfalls;

use self::added_file::AddedFile;
use self::held_mappings::{HeldMappings, Progress};
use self::origin::account_of;
use self::queue::Queue;
use self::reports::{PlantedFile, Reports};
use self::search::{ENDED, RefusedFile, Search, SearchedFile};
use crate::recording::build_ids::NewFiles;
use crate::recording::mapped_file::MappedFileId;
use crate::recording::session::Session;
use crate::recording::slow_files::Tries;
use crate::recording::unread_files::UnreadCounts;

pub(super) use self::reports::unanswered;
pub use self::settings::{Completion, Following};

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "follow";
/// How long the end of a recording waits for what is being attached.
const END_TIME: Duration = Duration::from_secs(2);
/// Maximum number of files without room that are distinguished.
const MAX_LEFT_OUT: usize = 1 << 16;

/// Numbers of files that appeared while recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedFiles {
    /// Files whose probes were attached.
    pub planted: usize,
    /// Files with selected probes that were not attached.
    pub refused: usize,
}

/// Follows the files that processes map.
#[derive(Debug)]
pub(super) struct Follower {
    queue: Arc<Queue>,
    found: Receiver<SearchedFile>,
    /// Readable when the thread has found something.
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    reports: Reports,
    files: FollowedFiles,
    /// Number of files that were not read: too many at once, or the recording ended.
    unread: usize,
    /// Files that had no room, and have had none since.
    left_out: HashSet<MappedInode>,
    /// Numbers of files that could not be read, of processes that ran at the start.
    unread_at_start: UnreadCounts,
    /// Whether files that appear can be attached.
    is_on: bool,
    /// Whether processes are held until their files are done. Then these do not take turns.
    no_gap: bool,
    /// Number of files that were queued.
    queued: u64,
    held: HeldMappings,
    /// Files whose probes are attached, and which are not reported yet.
    unreported: Vec<AddedFile>,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of `eventfd(2)` or of starting the thread.
    pub(super) fn start(session: &Session) -> io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (send, found) = channel();
        let search = Search::new(session, Arc::clone(&queue), send, Arc::clone(&wake));
        let thread = thread::Builder::new().name(NAME.to_owned());
        let thread = thread.spawn(move || search.run())?;
        Ok(Self {
            queue,
            found,
            wake,
            thread: Some(thread),
            reports: Reports::for_target(&session.options.target),
            files: FollowedFiles {
                planted: 0,
                refused: session.refused_files,
            },
            unread: 0,
            left_out: HashSet::new(),
            unread_at_start: UnreadCounts::default(),
            is_on: session.attached.engine.follows() && !session.options.following.is_off,
            no_gap: session.attached.engine.holds_mappings(),
            queued: 0,
            held: HeldMappings::default(),
            unreported: Vec::new(),
        })
    }

    /// Whether files that appear can be attached.
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Queues files that were mapped. Returns those for which there was no room.
    pub(super) fn take(&mut self, new: NewFiles) -> Vec<MappedFileId> {
        let NewFiles {
            files, too_many, ..
        } = new;
        self.unread += too_many;
        let mut left_out = Vec::new();
        for file in files {
            let turn = match self.no_gap {
                true => Account::default(),
                false => account_of(&file),
            };
            self.left_out.remove(&file.id.mapped_inode());
            match self.queue.add(turn, file) {
                None => self.queued += 1,
                Some(file) => left_out.push(file.id),
            }
        }
        for file in &left_out {
            if self.left_out.len() < MAX_LEFT_OUT {
                self.left_out.insert(file.mapped_inode());
            } else {
                self.unread += 1;
            }
        }
        left_out
    }

    /// Notes files that could not be read of the processes that ran when the recording began.
    pub(super) const fn note_unread(&mut self, unread: UnreadCounts) {
        self.unread_at_start = unread;
    }

    /// Takes mappings whose processes are held. All files that were mapped before have been queued, but for those that did not answer at once.
    pub(super) fn hold(&mut self, mappings: Vec<NewMapping>, slow: Tries) {
        let progress = self.progress(slow);
        self.held.add(mappings, progress);
    }

    /// How far the files are.
    fn progress(&self, slow: Tries) -> Progress {
        Progress {
            done: self.queue.done(),
            queued: self.queued,
            slow,
            now: trace_clock::now(),
        }
    }

    /// Whether processes may be held until this thread has answered.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Readable when [`next`](Self::next) has something.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What the thread has found, one after the other.
    fn next(&self) -> Option<SearchedFile> {
        let mut count = [0; 8];
        // It is 0 if nothing was found.
        let _ = rustix::io::read(&self.wake, &mut count);
        self.found.try_recv().ok()
    }

    /// Numbers of files so far.
    pub(crate) const fn files(&self) -> FollowedFiles {
        self.files
    }

    /// Whether files are read or wait.
    pub(super) fn is_reading(&self) -> bool {
        self.queue.done() < self.queued
    }

    /// No file comes any more: the thread ends.
    pub(super) fn close(&self) {
        self.queue.close();
    }

    /// The recording ends: nothing is attached any more.
    pub(super) fn end(&self) {
        self.queue.end();
    }

    /// Ends the thread when it has read the files that wait. The shortfalls get those with selected probes, and numbers of those that were not
    /// read.
    pub(super) fn finish(&mut self, unread: UnreadCounts, shortfalls: &Shortfalls) {
        self.close();
        let begun = Instant::now();
        let thread = self.thread.take();
        while thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && begun.elapsed() < END_TIME
        {
            thread::sleep(Duration::from_millis(1));
        }
        // One of them may be read just now.
        self.unread += self.queued.saturating_sub(self.queue.done()) as usize;
        self.unread += std::mem::take(&mut self.left_out).len();
        while let Some(found) = self.next() {
            let refused = match found {
                SearchedFile::Refused(refused) => refused,
                SearchedFile::Planted(attached) => RefusedFile {
                    file: attached.file,
                    reason: ENDED.to_owned(),
                },
                SearchedFile::Unmapped(_) | SearchedFile::Released(_) => continue,
            };
            self.refuse(refused, shortfalls);
        }
        let mut unread = unread.with(self.unread_at_start);
        if !self.is_on {
            unread.lost_records = 0;
        }
        for unread in reports::unread(self.unread, unread) {
            shortfalls.add(unread);
        }
    }

    /// Reports a file whose probes are not attached.
    fn refuse(&mut self, file: RefusedFile, shortfalls: &Shortfalls) {
        self.files.refused += 1;
        shortfalls.add(self.reports.refused(file));
    }

    /// Reports probes of a file that are not attached, beside others of it that are.
    fn refuse_some(&self, file: RefusedFile, shortfalls: &Shortfalls) {
        shortfalls.add(self.reports.refused_probes(file));
    }

    /// Reports a file whose probes are attached.
    fn note(&mut self, file: PlantedFile<'_>, shortfalls: &Shortfalls) {
        self.files.planted += 1;
        shortfalls.add(self.reports.planted(file));
    }
}
