//! Files with selected probes that processes begin to map while recording: a library that is loaded, a program that was replaced by a new
//! version, a file without a name. Their probes are planted then.
//!
//! The loop of the recording sees mappings in the process records, and opens each file once (`build_ids.rs`). Reading its notes, planning and
//! attaching are done by a thread ([`search`]), which takes the files of users in turn ([`queue`]) and within limits ([`budget`]), since any
//! user can map any file. What it has attached is added to the recording by the loop ([`planting`]), between two passes.

mod budget;
mod planting;
mod queue;
mod reports;
mod search;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};
use usdtrec_format::BuildId;
use usdtrec_format::schema::Schemas;

use self::queue::Queue;
use self::reports::{PlantedFile, Reports};
use self::search::{ENDED, Found, RefusedFile, Search};
use crate::recording::build_ids::{NewFile, NewFiles};
use crate::recording::session::Session;
use crate::recording::shortfalls::Shortfalls;
use crate::select::EventSelector;
use crate::select::probe::PlannedProbe;

/// Name of the thread, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "follow";
/// How long the end of a recording waits for what is being planted.
const END_TIME: Duration = Duration::from_secs(2);

/// Adds to planned probes what only the caller knows.
pub type Completion = dyn Fn(&mut [PlannedProbe]) + Send + Sync;

/// What is planted in files that appear while recording.
#[derive(Clone)]
pub struct Following {
    /// The events, as they were selected at first.
    pub events: Vec<EventSelector>,
    /// Names and types of arguments.
    pub schemas: Arc<Schemas>,
    /// Attach even if a check of the file fails.
    pub force: bool,
    /// When the files that run were read, [ns since boot](Self::now).
    pub read_at: u64,
    /// Whether a recording may begin without probes.
    pub waits: bool,
    /// Adds to planned probes what only the caller knows.
    pub complete: Arc<Completion>,
}

/// Nothing is planted.
impl Default for Following {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            schemas: Arc::default(),
            force: false,
            read_at: 0,
            waits: false,
            complete: Arc::new(|_| {}),
        }
    }
}

impl Following {
    /// Time since boot, ns, within the precision of `/proc/PID/stat`.
    #[must_use]
    pub fn now() -> u64 {
        const PRECISION: Duration = Duration::from_millis(20);
        let now = clock_gettime(ClockId::Boottime);
        let now = Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32);
        now.saturating_sub(PRECISION).as_nanos() as u64
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Following")
            .field("events", &self.events)
            .field("force", &self.force)
            .finish_non_exhaustive()
    }
}

/// Numbers of files that appeared while recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedFiles {
    /// Files whose probes were planted.
    pub planted: usize,
    /// Files with selected probes that were not planted.
    pub refused: usize,
    /// Files that were not read: too many at once, or the recording ended.
    pub unread: usize,
    /// Files that this user may not open.
    pub denied: usize,
}

/// Where a file with selected probes comes from.
#[derive(Clone, Debug)]
struct Origin {
    /// The first process that mapped it.
    pid: i32,
    /// When it was mapped, ns of the trace's clock; 0 if that is not known.
    mapped_at: u64,
    path: PathBuf,
    build_id: Option<BuildId>,
    /// The user who owns the file.
    owner: u32,
}

/// Follows the files that processes map.
#[derive(Debug)]
pub(crate) struct Follower {
    queue: Arc<Queue>,
    found: Receiver<Found>,
    /// Readable when the thread has found something.
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    reports: Reports,
    files: FollowedFiles,
}

impl Follower {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of `eventfd(2)` or of starting the thread.
    pub(crate) fn start(session: &Session) -> io::Result<Self> {
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
            files: FollowedFiles::default(),
        })
    }

    /// Queues files that were mapped.
    pub(crate) fn take(&mut self, new: NewFiles) {
        let NewFiles {
            files,
            too_many,
            denied,
        } = new;
        self.files.unread += too_many;
        self.files.denied += denied;
        for file in files {
            let user = file.user.unwrap_or_else(|| owner(&file));
            self.files.unread += usize::from(!self.queue.add(user, file));
        }
    }

    /// Readable when [`next`](Self::next) has something.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// What the thread has found, one after the other.
    fn next(&self) -> Option<Found> {
        let mut count = [0; 8];
        // It is 0 if nothing was found.
        let _ = rustix::io::read(&self.wake, &mut count);
        self.found.try_recv().ok()
    }

    /// Numbers of files so far.
    pub(crate) const fn files(&self) -> FollowedFiles {
        self.files
    }

    /// The recording ends: nothing is planted any more.
    pub(crate) fn end(&self) {
        self.queue.end();
    }

    /// Ends the thread when it has read the files that wait. The shortfalls get those with selected probes.
    pub(crate) fn finish(&mut self, shortfalls: &Shortfalls) {
        self.queue.close();
        let begun = Instant::now();
        let thread = self.thread.take();
        while thread.as_ref().is_some_and(|thread| !thread.is_finished())
            && begun.elapsed() < END_TIME
        {
            thread::sleep(Duration::from_millis(1));
        }
        self.files.unread += self.queue.len();
        while let Some(found) = self.next() {
            let refused = match found {
                Found::Refused(refused) => refused,
                Found::Planted(attached) => RefusedFile {
                    file: attached.file,
                    reason: ENDED.to_owned(),
                },
            };
            self.refuse(refused, shortfalls);
        }
    }

    /// Reports a file whose probes are not planted.
    fn refuse(&mut self, file: RefusedFile, shortfalls: &Shortfalls) {
        self.files.refused += 1;
        shortfalls.add(self.reports.refused(file));
    }

    /// Reports a file whose probes are planted.
    fn note(&mut self, file: PlantedFile<'_>, shortfalls: &Shortfalls) {
        self.files.planted += 1;
        shortfalls.add(self.reports.planted(file));
    }
}

/// The user who owns a file; 0 if that is not known.
fn owner(file: &NewFile) -> u32 {
    let metadata = file.object.file().metadata();
    metadata.map_or(0, |metadata| std::os::unix::fs::MetadataExt::uid(&metadata))
}
