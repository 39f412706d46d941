//! Semaphores that the kernel counts wrong ([`SemaphoreFault`](usdtrec_buildid_cache::elf::SemaphoreFault)): lld and mold place segments
//! of a file so that two of them share a page. The sites of such files are attached without their semaphores, and the semaphores are
//! incremented here, in each recorded process by itself.
//!
//! A semaphore is incremented twice over: first *by hand*, through `/proc/PID/mem`, as soon as its memory is mapped; a little later by the
//! kernel (*counted*), by a uprobe of this process alone at a place of the file that nobody executes ([`Counting`]), and then decremented by
//! hand. The kernel decrements what it counts when the recorder ends in any way. Which processes have semaphores that were incremented by
//! hand is noted below `/run/usdtrec`, for the next recording and for `doctor` (`stored_increments`).
//!
//! Invariants:
//! 1. The state of a process (`Process`) is read and changed under its lock only, together with the process's memory. Whoever has the
//!    lock may change a semaphore. The urgent thread never waits for the lock: it tries again.
//! 2. A semaphore that is incremented by hand is in a note before, and until it is decremented or its memory is gone. So a killed recorder
//!    leaves nothing that is not noted, and at worst a note of what is not incremented: who repairs does not decrement a semaphore that is 0.
//! 3. The kernel finds the memory of a semaphore by the first writable mapping of its page. The uprobe is therefore created only when
//!    exactly one writable mapping has the page: when the loader has made the other one read-only.
//! 4. The uprobe of a process applies to what it executes or loads later, too. The kernel then increments the wrong mapping, or increments
//!    once for several breakpoints; but at the end it decrements the semaphore once for each breakpoint in a mapping of the place. That many
//!    are added by hand, at once (`Process::raise`).
//! 5. A child has its parent's memory, semaphores and breakpoints, without the parent's uprobe. It gets a uprobe of its own soon, because
//!    the end of any other one at that place would end its breakpoints.
//! 6. At the end: no more events; the uprobes; then by hand; the sites last. In the other order programs would prepare arguments of hits
//!    that nobody records. Last the semaphores are read, and those that are not 0 are reported.
//!
//! A semaphore that another tracer changes in the moment in which it is changed by hand may get a wrong value: nothing makes such a change
//! atomic.
//!
//! The uprobe that counts must be where nobody executes: at unused bytes of the file that are mapped read-only (padding
//! of the ELF header, gaps between sections). It is the same location for a semaphore in all recordings, because the
//! kernel allows one semaphore per location.

pub mod copies;
mod counted_files;
mod file;
mod file_memory;
mod gap;
mod hand_over;
pub(crate) mod left_raised;
mod priority;
mod process;
mod same_memory;
mod stored_increments;
mod table;
mod urgent;

use std::borrow::Borrow;
use std::io::{self, PipeWriter};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use usdtrec_attach::engine::{Counting, ProcessEvents, TaskFilter, UprobePmu};
use usdtrec_attach::error::RecordError;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_kernel::KernelError;
use usdtrec_kernel::host::cpus;

use crate::left_breakpoints::NotedSite;
use crate::shortfalls::Shortfalls;

use self::file::CountedFile;
use self::hand_over::{HandOver, Job};
use self::table::Table;
use self::urgent::Urgent;

pub use self::stored_increments::RaisedProcess;
pub use self::stored_increments::{Repair, raised_processes};

/// The semaphores of a recording that the kernel counts wrong. Dropping it decrements all of them.
#[derive(Debug)]
pub struct Semaphores {
    table: Arc<Table>,
    /// `None` once they have ended.
    threads: Option<Threads>,
}

/// The two threads.
#[derive(Debug)]
struct Threads {
    urgent: JoinHandle<Urgent>,
    hand_over: JoinHandle<()>,
    jobs: Sender<Job>,
    /// The urgent thread begins with a message.
    begin: Sender<()>,
    /// The urgent thread ends when this closes.
    stop: PipeWriter,
}

/// The locations at which processes get breakpoints for the semaphores of these probes.
pub fn places(probes: &[impl Borrow<PlannedProbe>]) -> Vec<NotedSite> {
    let files = CountedFile::of_probes(probes);
    files.iter().flat_map(CountedFile::places).collect()
}

/// Whether the kernel counts semaphores of these probes wrong.
pub fn are_counted_wrong(probes: &[impl Borrow<PlannedProbe>]) -> bool {
    !CountedFile::of_probes(probes).is_empty()
}

impl Semaphores {
    /// Opens the records and starts the threads, so that they run at once when the probes are enabled; `None` if the kernel counts all semaphores of the probes right.
    pub fn start(
        probes: &[impl Borrow<PlannedProbe>],
        filter: &TaskFilter,
        pmu: UprobePmu,
        shortfalls: Shortfalls,
    ) -> Result<Option<Self>, RecordError> {
        let files = CountedFile::of_probes(probes);
        if files.is_empty() {
            // Those of other files.
            let _ = raised_processes(Repair::Now);
            return Ok(None);
        }
        Self::of_files(files, filter, pmu, shortfalls).map(Some)
    }

    /// The same without probes, which are added later.
    pub fn start_without_probes(
        filter: &TaskFilter,
        pmu: UprobePmu,
        shortfalls: Shortfalls,
    ) -> Result<Self, RecordError> {
        Self::of_files(Vec::new(), filter, pmu, shortfalls)
    }

    fn of_files(
        files: Vec<CountedFile>,
        filter: &TaskFilter,
        pmu: UprobePmu,
        shortfalls: Shortfalls,
    ) -> Result<Self, RecordError> {
        // What a killed recorder left would be counted twice.
        let _ = raised_processes(Repair::UntilEnded);
        let events = ProcessEvents::open(&cpus::online()?)?;
        let table = Arc::new(Table::new(files, filter, Counting::new(pmu), shortfalls));
        let threads = Threads::start(&table, events).map_err(KernelError::host("threads"))?;
        Ok(Self {
            table,
            threads: Some(threads),
        })
    }

    /// Adds probes while recording, and increments their semaphores in `running`: recorded processes that map their files.
    pub fn add(&self, probes: &[impl Borrow<PlannedProbe>], running: &[i32]) {
        let files = CountedFile::of_probes(probes);
        if !files.is_empty() {
            let pids = running.iter().filter_map(|pid| (*pid).try_into().ok());
            let added = self.table.add(files, pids);
            self.raise(running, &added);
        }
    }

    /// Increments semaphores from now on, first those of processes that ran already when the probes were attached: `running` are those that
    /// map a file with probes. The probes are enabled.
    pub fn begin(&self, running: &[i32]) {
        self.raise(running, &self.table.files());
    }

    fn raise(&self, running: &[i32], files: &Range<usize>) {
        let Some(threads) = &self.threads else { return };
        let _ = threads.begin.send(());
        let running = running.iter().filter_map(|pid| (*pid).try_into().ok());
        for pid in self.table.raise_all(running, files, None) {
            let _ = threads.jobs.send(Job::hand_over(pid));
        }
    }

    /// Says that a process will be stopped after its `execve(2)`, before it runs anything.
    pub fn expect_stop(&self, pid: u32) {
        self.table.expect_stop(pid);
    }

    /// Increments the semaphores of a process that is stopped after its `execve(2)`.
    pub fn raise_stopped(&self, pid: u32) {
        if self.table.raise_stopped(pid)
            && let Some(threads) = &self.threads
        {
            let _ = threads.jobs.send(Job::hand_over(pid));
        }
    }

    /// Decrements all semaphores, and reports what processes lacked. The sites are still attached.
    pub fn finish(mut self) {
        self.end();
        self.table.report_gaps();
    }

    fn end(&mut self) {
        let urgent = self.threads.take().and_then(|threads| {
            let Threads {
                urgent,
                hand_over,
                jobs,
                begin,
                stop,
            } = threads;
            drop((begin, stop));
            let _ = jobs.send(Job::End);
            let urgent = urgent.join().ok();
            // Children of the last moment are in the table by now.
            let _ = hand_over.join();
            urgent
        });
        self.table.lower_all();
        if let Some(urgent) = urgent {
            urgent.lower_children();
        }
        self.table.read_back();
    }
}

impl Threads {
    fn start(table: &Arc<Table>, events: ProcessEvents) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let (begin, begun) = channel();
        let (jobs, queue) = channel();
        let hand_over = HandOver::new(Arc::clone(table), queue);
        let urgent = Urgent::new(Arc::clone(table), events, jobs.clone());
        Ok(Self {
            hand_over: named("semaphores", move || hand_over.run())?,
            urgent: named("urgent", move || urgent.run(&begun, &stopped))?,
            jobs,
            begin,
            stop,
        })
    }
}

impl Drop for Semaphores {
    fn drop(&mut self) {
        if self.threads.is_some() {
            self.end();
        }
    }
}

fn named<T: Send + 'static>(
    name: &str,
    job: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(job)
}
