//! The thread that lets the kernel count what was incremented by hand. Creating a uprobe takes a quarter of a second at times, so no urgent
//! increment may wait for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use usdtrec_kernel::host::process::Process;

use super::priority;
use super::process::HandedOver;
use super::table::Table;

/// Time after which the kernel is to count: a process that ends before costs nothing.
const DELAY: Duration = Duration::from_millis(20);
/// Maximum number of attempts for a process whose loader is not done; each waits twice as long as the one before. After the last one the
/// semaphores stay incremented by hand.
const MAX_TRIES: u32 = 10;
/// Time after the end of the first thread of a process, after which it has ended.
const ENDING: Duration = Duration::from_millis(100);
/// Time between two looks at a process of which only other threads run.
const LATE_END: Duration = Duration::from_secs(1);
/// Ratio of the pause after a look at all processes to its duration: any user can have records lost all the time.
const LOOK_PAUSE: u32 = 9;
/// Number of descriptors of ended processes that are closed together.
const TOGETHER: usize = 32;

/// What is to be done.
#[derive(Debug)]
pub(super) enum Job {
    /// Let the kernel count the semaphores of a process.
    HandOver { pid: u32, due: Instant, tries: u32 },
    /// A process may have ended.
    Ended { pid: u32, due: Instant },
    /// Events since then are missing: look at all processes. ns of `CLOCK_MONOTONIC`. One look is for all that were asked for before it.
    LookAtAll { since: u64 },
    /// No more jobs; looks that were asked for are not begun any more.
    End,
}

impl Job {
    /// For a process whose semaphores were incremented just now.
    pub(super) fn hand_over(pid: u32) -> Self {
        Self::HandOver {
            pid,
            due: Instant::now() + DELAY,
            tries: 0,
        }
    }

    /// For a child, whose breakpoints depend on those of other processes.
    pub(super) fn hand_over_now(pid: u32) -> Self {
        Self::HandOver {
            pid,
            due: Instant::now(),
            tries: 0,
        }
    }

    /// For a process whose first thread has ended.
    pub(super) fn ended(pid: u32) -> Self {
        Self::Ended {
            pid,
            due: Instant::now() + ENDING,
        }
    }

    fn due(&self) -> Option<Instant> {
        match self {
            Self::HandOver { due, .. } | Self::Ended { due, .. } => Some(*due),
            Self::LookAtAll { .. } | Self::End => None,
        }
    }
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct HandOver {
    table: Arc<Table>,
    queue: Receiver<Job>,
    waiting: Vec<Job>,
    /// Since when events are missing; `None` if none are.
    missed: Option<u64>,
    /// When all processes may be looked at again.
    next_look: Instant,
    /// Of processes that have ended.
    closing: Vec<OwnedFd>,
}

impl HandOver {
    pub(super) fn new(table: Arc<Table>, queue: Receiver<Job>) -> Self {
        Self {
            table,
            queue,
            waiting: Vec::new(),
            missed: None,
            next_look: Instant::now(),
            closing: Vec::new(),
        }
    }

    /// Does jobs until [`Job::End`].
    pub(super) fn run(mut self) {
        // While it is suspended with a lock, the urgent thread would wait.
        priority::raise(1);
        while self.step() {}
        self.table.close(self.closing);
    }

    /// Takes a message, or does what is due. Returns whether there is more to come.
    fn step(&mut self) -> bool {
        let received = self.receive();
        let begun = Instant::now();
        match received {
            Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(Job::LookAtAll { since }) => {
                self.missed = Some(self.missed.map_or(since, |missed| missed.min(since)));
            }
            Ok(job) => self.waiting.push(job),
            Err(RecvTimeoutError::Timeout) => {
                match self.missed.take_if(|_| begun >= self.next_look) {
                    Some(since) => {
                        let raised = self.table.raise_running(since);
                        self.waiting.extend(raised.into_iter().map(Job::hand_over));
                        self.next_look = Instant::now() + begun.elapsed() * LOOK_PAUSE;
                    }
                    None => self.do_one(),
                }
            }
        }
        true
    }

    /// The next message. A time-out says that something is to be done: the look at all processes, or else what is due.
    fn receive(&self) -> Result<Job, RecvTimeoutError> {
        let look = self.missed.map(|_| self.next_look);
        match self.waiting.iter().filter_map(Job::due).chain(look).min() {
            None => (self.queue.recv()).map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => (self.queue).recv_timeout(due.saturating_duration_since(Instant::now())),
        }
    }

    /// Does the job that is due first.
    fn do_one(&mut self) {
        let first = (0..self.waiting.len()).min_by_key(|at| self.waiting[*at].due());
        let Some(job) = first.map(|first| self.waiting.swap_remove(first)) else {
            return;
        };
        match job {
            Job::HandOver { pid, tries, .. } => {
                let handed = self.table.hand_over(pid);
                if matches!(handed, Ok(HandedOver::NotYet)) && tries < MAX_TRIES {
                    self.waiting.push(Job::HandOver {
                        pid,
                        due: Instant::now() + DELAY * (1 << tries),
                        tries: tries + 1,
                    });
                }
            }
            Job::Ended { pid, .. } => {
                self.closing.extend(self.table.forget_ended(pid));
                // Other threads run, whose ends are not reported.
                if self.table.has(pid) && has_no_first_thread(pid) {
                    let due = Instant::now() + LATE_END;
                    self.waiting.push(Job::Ended { pid, due });
                }
                if self.closing.len() >= TOGETHER {
                    self.table.close(std::mem::take(&mut self.closing));
                }
            }
            Job::LookAtAll { .. } | Job::End => {}
        }
    }
}

/// Whether the first thread of a process has ended, and others run.
fn has_no_first_thread(pid: u32) -> bool {
    let stat = Process::open(pid.cast_signed()).and_then(|process| process.stat());
    stat.is_ok_and(|stat| stat.has_ended() && stat.num_threads > 1)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use usdtrec_attach::engine::{Counting, TaskFilter, UprobePmu};

    use super::super::stored_increments::start_of;
    use super::*;
    use crate::shortfalls::Shortfalls;

    /// Says to a test that it is in the process whose first thread ends.
    const ENDS: &str = "USDTREC_TEST_FIRST_THREAD_ENDS";

    extern "C" fn end_thread(_signal: libc::c_int) {
        // SAFETY: it ends this thread, which nobody waits for.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }

    /// Ends the first thread of its process, if that is one of its own.
    #[test]
    fn first_thread_ends() {
        if std::env::var_os(ENDS).is_some() {
            let own = std::process::id();
            let handler = end_thread as extern "C" fn(libc::c_int);
            // SAFETY: the handler makes a system call only.
            unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
            // SAFETY: tgkill(2) takes integers.
            unsafe { libc::syscall(libc::SYS_tgkill, own, own, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    /// The end of the last thread of a process is not reported if that is not the first one.
    #[test]
    fn a_process_of_which_only_other_threads_run_is_forgotten_later() {
        let counting = Counting::new(UprobePmu::find());
        let shortfalls = Shortfalls::default();
        let table = Table::new(Vec::new(), &TaskFilter::All, counting, shortfalls);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "semaphores::hand_over::tests::first_thread_ends"])
            .env(ENDS, "1")
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        let begun = Instant::now();
        while !has_no_first_thread(pid) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        table.process(pid, start_of(pid).unwrap());
        let (_jobs, queue) = channel();
        let mut hand_over = HandOver::new(Arc::new(table), queue);
        for is_known in [true, false] {
            let due = Instant::now();
            hand_over.waiting = vec![Job::Ended { pid, due }];
            hand_over.do_one();
            assert_eq!(hand_over.waiting.len(), usize::from(is_known));
            assert_eq!(hand_over.table.has(pid), is_known);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// A flood of lost records has neither a look for each nor one before the end.
    #[test]
    fn one_look_is_for_all_lost_records() {
        let counting = Counting::new(UprobePmu::find());
        let shortfalls = Shortfalls::default();
        let table = Table::new(Vec::new(), &TaskFilter::All, counting, shortfalls);
        let (jobs, queue) = channel();
        let mut hand_over = HandOver::new(Arc::new(table), queue);
        for since in [5, 3, 4] {
            jobs.send(Job::LookAtAll { since }).unwrap();
        }
        for _ in 0..3 {
            assert!(hand_over.step());
        }
        assert_eq!(hand_over.missed, Some(3));
        assert!(hand_over.step());
        assert_eq!(hand_over.missed, None);
        // The next look is after a pause, in which other jobs are done.
        hand_over.next_look = Instant::now() + Duration::from_secs(3600);
        jobs.send(Job::LookAtAll { since: 6 }).unwrap();
        jobs.send(Job::End).unwrap();
        assert!(hand_over.step());
        assert!(!hand_over.step());
        assert_eq!(hand_over.missed, Some(6));
        let due = Instant::now();
        hand_over.waiting.push(Job::Ended { pid: 1, due });
        assert!(hand_over.step());
        assert_eq!((hand_over.missed, hand_over.waiting.len()), (Some(6), 0));
    }
}
