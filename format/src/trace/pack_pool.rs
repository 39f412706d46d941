//! Compresses samples in several threads.
//!
//! Runs of samples are submitted and taken in the order of the file. The thread that waits for its chunks compresses other runs meanwhile,
//! so that without helpers it does everything itself.
//!
//! Draining the rings takes a quarter of the recorder's time, compressing most of the rest; `cargo bench -p
//! usdtrec-format --bench trace` prints what a second thread gains. The parts of a pass are split into runs of 256 kB,
//! which helpers compress while the recorder drains. Parts are written and committed in their order (`part.rs`), and a
//! pass ends when all of its parts are written. So the order of records in the file does not depend on the number of
//! threads.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::buffer::RecordBuffer;
use super::codec::Compression;
use super::packer::{Chunks, Packer};

/// Name of the helpers, as in `/proc/PID/task/TID/comm`.
const NAME: &str = "compress";

/// Number of waiting runs from which on a helper is started: below it, starting and waking one costs more than it gains.
const HELPER_RUNS: usize = 8;

/// Segments of a sealed buffer.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) buffer: Arc<RecordBuffer>,
    pub(crate) segments: Range<usize>,
}

/// A run that was submitted.
#[derive(Debug)]
pub(crate) struct Submitted {
    number: u64,
    run: Run,
}

/// The threads that compress: the caller, and helpers.
pub(crate) struct PackPool {
    /// The caller's.
    pub(crate) packer: Packer,
    compression: Compression,
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
    /// Maximum number of helpers.
    most: usize,
    /// Number of runs submitted so far.
    submitted: u64,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    /// There are runs to be compressed, or the pool has ended.
    is_wanted: Condvar,
    /// A run is compressed.
    is_done: Condvar,
}

#[derive(Default)]
struct Work {
    /// Runs that nobody compresses yet.
    waiting: VecDeque<(u64, Run)>,
    /// Chunks of runs, by number; `None` if a helper failed.
    done: BTreeMap<u64, Option<Chunks>>,
    ended: bool,
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        // What the lock guards is valid between any two statements.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PackPool {
    /// A pool without helpers.
    ///
    /// # Errors
    /// The error of zstd.
    pub(crate) fn new(compression: Compression) -> std::io::Result<Self> {
        Ok(Self {
            packer: Packer::new(compression)?,
            compression,
            shared: Arc::default(),
            helpers: Vec::new(),
            most: 0,
            submitted: 0,
        })
    }

    /// Allows `threads` threads, the caller's among them. Helpers are started when many runs wait, or at once if `at_once`.
    pub(crate) fn set_threads(&mut self, threads: NonZeroUsize, at_once: bool) {
        self.most = match self.compression {
            Compression::None => 0,
            Compression::Zstd(_) => threads.get() - 1,
        };
        while at_once && self.helpers.len() < self.most && self.start_helper() {}
    }

    /// Maximum number of helpers.
    pub(crate) const fn most_helpers(&self) -> usize {
        self.most
    }

    /// Submits runs, in the order of the file.
    pub(crate) fn submit(&mut self, runs: impl Iterator<Item = Run>) -> VecDeque<Submitted> {
        let numbered = (self.submitted..)
            .zip(runs)
            .map(|(number, run)| Submitted { number, run });
        let numbered: VecDeque<Submitted> = numbered.collect();
        self.submitted += numbered.len() as u64;
        let mut work = self.shared.work();
        let has_many = work.waiting.len() >= HELPER_RUNS;
        let waiting = numbered.iter().map(|run| (run.number, run.run.clone()));
        work.waiting.extend(waiting);
        drop(work);
        self.shared.is_wanted.notify_all();
        if has_many && self.helpers.len() < self.most && !self.start_helper() {
            self.most = self.helpers.len();
        }
        numbered
    }

    /// Whether a run is compressed.
    pub(crate) fn is_done(&self, run: &Submitted) -> bool {
        self.shared.work().done.contains_key(&run.number)
    }

    /// The chunks of a run. Compresses those that wait until it is done.
    pub(crate) fn take(&mut self, run: &Submitted) -> Chunks {
        let mut work = self.shared.work();
        loop {
            if let Some(chunks) = work.done.remove(&run.number) {
                drop(work);
                let Run { buffer, segments } = &run.run;
                return chunks.unwrap_or_else(|| self.packer.chunks(buffer, segments.clone()));
            }
            let Some((number, run)) = work.waiting.pop_front() else {
                let waited = self.shared.is_done.wait(work);
                work = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(work);
            let chunks = self.packer.chunks(&run.buffer, run.segments);
            work = self.shared.work();
            work.done.insert(number, Some(chunks));
        }
    }

    /// Starts a helper; `false` if that is impossible.
    fn start_helper(&mut self) -> bool {
        let Ok(mut packer) = Packer::new(self.compression) else {
            return false;
        };
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name(NAME.to_owned());
        let helper = builder.spawn(move || help(&shared, &mut packer));
        helper.map(|helper| self.helpers.push(helper)).is_ok()
    }
}

impl Drop for PackPool {
    fn drop(&mut self) {
        let mut work = self.shared.work();
        work.ended = true;
        work.waiting.clear();
        drop(work);
        self.shared.is_wanted.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper that failed has posted this.
            let _ = helper.join();
        }
    }
}

/// Compresses runs until the pool ends.
fn help(shared: &Shared, packer: &mut Packer) {
    loop {
        let mut work = shared.work();
        let (number, run) = loop {
            if work.ended {
                return;
            }
            if let Some(run) = work.waiting.pop_front() {
                break run;
            }
            let waited = shared.is_wanted.wait(work);
            work = waited.unwrap_or_else(PoisonError::into_inner);
        };
        drop(work);
        let mut post = Post {
            shared,
            number,
            chunks: None,
        };
        post.chunks = Some(packer.chunks(&run.buffer, run.segments.clone()));
        // The buffer is the caller's again when the chunks are posted.
        drop(run);
    }
}

/// Posts the chunks of a run when it is dropped, by a panic, too.
struct Post<'a> {
    shared: &'a Shared,
    number: u64,
    chunks: Option<Chunks>,
}

impl Drop for Post<'_> {
    fn drop(&mut self) {
        let chunks = self.chunks.take();
        self.shared.work().done.insert(self.number, chunks);
        self.shared.is_done.notify_all();
    }
}
