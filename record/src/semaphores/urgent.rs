//! The thread that increments semaphores as soon as a process has mapped them.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::hand_over::Job;
use super::priority;
use super::process::now;
use super::table::{Attempt, Mapped, Table};
use crate::engine::{ProcessEvent, ProcessEvents, TimedEvent};

/// How long a process is tried.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of processes that are tried again and again.
const MOST_PENDING: usize = 4096;

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Urgent {
    table: Arc<Table>,
    events: ProcessEvents,
    /// When the probes were enabled; 0 before.
    enabled: u64,
    jobs: Sender<Job>,
    pending: Vec<Pending>,
    batch: Vec<TimedEvent>,
}

/// Something that could not be done yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    task: Task,
    first: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// A process mapped the code of a file.
    Raise(Mapped),
    /// A process started another one at this time.
    Inherit { parent: u32, child: u32, time: u64 },
    /// A process executed a program at this time.
    Executed { pid: u32, time: u64 },
}

impl Urgent {
    pub(super) const fn new(table: Arc<Table>, events: ProcessEvents, jobs: Sender<Job>) -> Self {
        Self {
            table,
            events,
            enabled: 0,
            jobs,
            pending: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Waits until the probes are enabled, and runs until the other end of `stop` is closed.
    pub(super) fn run(mut self, enabled: &Receiver<()>, stop: &PipeReader) -> Self {
        priority::raise(2);
        if enabled.recv().is_err() {
            return self;
        }
        self.enabled = now();
        loop {
            let timeout = self.timeout();
            let mut polled = vec![PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
            let readable = self.events.readable();
            polled.extend(readable.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            let polling = poll(&mut polled, timeout.as_ref());
            let is_over = polled
                .first()
                .is_some_and(|stop| !stop.revents().is_empty());
            drop(polled);
            let is_broken = matches!(polling, Err(error) if error != rustix::io::Errno::INTR);
            self.pass();
            if is_over || is_broken {
                return self;
            }
        }
    }

    /// Decrements the semaphores of children that were forked after the last pass, and before those of their parents were decremented.
    pub(super) fn lower_children(mut self) {
        let _ = self.events.disable();
        self.batch.clear();
        self.events.take(&mut self.batch);
        for TimedEvent { time, event } in self.batch {
            if let ProcessEvent::Fork { parent, child } = event {
                self.table.lower_child(parent, child, time);
            }
        }
    }

    /// The time until what is pending is tried again; `None` if nothing is.
    fn timeout(&self) -> Option<Timespec> {
        let youngest = self.pending.iter().map(|pending| pending.first.elapsed());
        let wait = youngest.min()? / 4;
        let wait = wait.clamp(Duration::from_micros(50), Duration::from_millis(10));
        Some(Timespec {
            tv_sec: 0,
            tv_nsec: wait.subsec_nanos().into(),
        })
    }

    /// Takes all events, and tries what is pending.
    fn pass(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        self.events.take(&mut batch);
        for pending in std::mem::take(&mut self.pending) {
            self.attempt(pending);
        }
        for event in &batch {
            self.take(*event);
        }
        self.batch = batch;
    }

    fn take(&mut self, TimedEvent { time, event }: TimedEvent) {
        let first = Instant::now();
        match event {
            ProcessEvent::Fork { parent, child } => {
                self.table.follow(parent, child);
                if self.table.has(parent) {
                    self.attempt(Pending {
                        task: Task::Inherit {
                            parent,
                            child,
                            time,
                        },
                        first,
                    });
                }
            }
            ProcessEvent::Exec { pid } => self.attempt(Pending {
                task: Task::Executed { pid, time },
                first,
            }),
            ProcessEvent::Code { pid, file } => {
                if let Some(file) = self.table.file(file)
                    && self.table.is_recorded(pid)
                {
                    self.attempt(Pending {
                        task: Task::Raise(Mapped {
                            pid,
                            file,
                            since: time,
                            begun: (time >= self.enabled).then_some(time),
                        }),
                        first,
                    });
                }
            }
            ProcessEvent::Exit { pid } => {
                if self.table.has(pid) {
                    let _ = self.jobs.send(Job::ended(pid));
                }
            }
            ProcessEvent::Lost => _ = self.jobs.send(Job::LookAtAll),
        }
    }

    fn attempt(&mut self, pending: Pending) {
        let attempt = match pending.task {
            Task::Raise(mapped) => self.raise(mapped),
            Task::Inherit {
                parent,
                child,
                time,
            } => self.inherit(parent, child, time),
            Task::Executed { pid, time } => match self.table.executed(pid, time) {
                true => Attempt::Known,
                false => Attempt::Again,
            },
        };
        match attempt {
            Attempt::Again
                if pending.first.elapsed() < PATIENCE && self.pending.len() < MOST_PENDING =>
            {
                self.pending.push(pending);
            }
            Attempt::Again | Attempt::Unreached => {
                if let Task::Raise(mapped) = pending.task {
                    self.table.count_unreached(mapped);
                }
            }
            Attempt::Done | Attempt::Known => {}
        }
    }

    fn raise(&self, mapped: Mapped) -> Attempt {
        // What happened to the process before comes first.
        if self
            .pending
            .iter()
            .any(|pending| pending.task.is_of(mapped.pid))
        {
            return Attempt::Again;
        }
        let attempt = self.table.raise(mapped);
        if attempt == Attempt::Done {
            let _ = self.jobs.send(Job::hand_over(mapped.pid));
        }
        attempt
    }

    fn inherit(&mut self, parent: u32, child: u32, time: u64) -> Attempt {
        let attempt = self.table.inherit(parent, child, time);
        if attempt == Attempt::Done {
            let _ = self.jobs.send(Job::hand_over_now(child));
        }
        attempt
    }
}

impl Task {
    /// Whether it comes before an increment in this process.
    fn is_of(&self, process: u32) -> bool {
        match self {
            Self::Raise(_) => false,
            Self::Inherit { child, .. } => *child == process,
            Self::Executed { pid, .. } => *pid == process,
        }
    }
}
