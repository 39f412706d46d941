//! The thread that lets the kernel count what was incremented by hand. Creating a uprobe takes a quarter of a second at times, so no urgent
//! increment may wait for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

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
    /// Of processes that have ended.
    closing: Vec<OwnedFd>,
}

impl HandOver {
    pub(super) const fn new(table: Arc<Table>, queue: Receiver<Job>) -> Self {
        Self {
            table,
            queue,
            waiting: Vec::new(),
            missed: None,
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
        match self.receive() {
            Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(Job::LookAtAll { since }) => {
                self.missed = Some(self.missed.map_or(since, |missed| missed.min(since)));
            }
            Ok(job) => self.waiting.push(job),
            Err(RecvTimeoutError::Timeout) => match self.missed.take() {
                Some(since) => {
                    let raised = self.table.raise_running(since);
                    self.waiting.extend(raised.into_iter().map(Job::hand_over));
                }
                None => self.do_one(),
            },
        }
        true
    }

    /// The next message. A time-out says that something is to be done: the look at all processes, or else what is due.
    fn receive(&self) -> Result<Job, RecvTimeoutError> {
        if self.missed.is_some() {
            return self.queue.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            });
        }
        match self.waiting.iter().filter_map(Job::due).min() {
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
                if self.closing.len() >= TOGETHER {
                    self.table.close(std::mem::take(&mut self.closing));
                }
            }
            Job::LookAtAll { .. } | Job::End => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use usdtrec_attach::engine::{Counting, TaskFilter, UprobePmu};

    use super::*;
    use crate::shortfalls::Shortfalls;

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
        jobs.send(Job::LookAtAll { since: 6 }).unwrap();
        jobs.send(Job::End).unwrap();
        assert!(hand_over.step());
        assert!(!hand_over.step());
        assert_eq!(hand_over.missed, Some(6));
    }
}
