//! The thread that increments semaphores as soon as a process has mapped them.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_attach::engine::{ProcessEvent, ProcessEvents, TimedEvent};
use usdtrec_kernel::trace_clock;

use super::hand_over::Job;
use super::priority;
use super::same_memory::is_shared;
use super::table::{Attempt, Mapped, Table};
use crate::limits::MAX_PENDING;

/// Shortest and longest interval of trying a process again: it may be stopped in its loader, or map the code alone.
const MIN_RETRY_INTERVAL: Duration = Duration::from_micros(50);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Urgent {
    table: Arc<Table>,
    events: ProcessEvents,
    /// When the probes were enabled; 0 before.
    enabled: u64,
    /// When the last pass began.
    passed: u64,
    jobs: Sender<Job>,
    pending: Vec<Pending>,
    batch: Vec<TimedEvent>,
}

/// Something that could not be done yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    task: Task,
    first: Instant,
    /// When it is tried next.
    next: Instant,
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

impl Pending {
    fn new(task: Task) -> Self {
        let first = Instant::now();
        Self {
            task,
            first,
            next: first,
        }
    }
}

impl Urgent {
    pub(super) const fn new(table: Arc<Table>, events: ProcessEvents, jobs: Sender<Job>) -> Self {
        Self {
            table,
            events,
            enabled: 0,
            passed: 0,
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
        self.enabled = trace_clock::now();
        self.passed = self.enabled;
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
        let next = self.pending.iter().map(|pending| pending.next).min()?;
        let wait = next.saturating_duration_since(Instant::now());
        Timespec::try_from(wait).ok()
    }

    /// Takes all events, and tries what is pending.
    fn pass(&mut self) {
        let passed = trace_clock::now();
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        self.events.take(&mut batch);
        let now = Instant::now();
        for pending in std::mem::take(&mut self.pending) {
            if pending.next <= now {
                self.attempt(pending);
            } else {
                self.pending.push(pending);
            }
        }
        for event in &batch {
            self.take(*event);
        }
        self.batch = batch;
        self.passed = passed;
    }

    fn take(&mut self, TimedEvent { time, event }: TimedEvent) {
        match event {
            ProcessEvent::Fork { parent, child } => {
                self.table.follow(parent, child);
                if self.table.has(parent) {
                    self.attempt(Pending::new(Task::Inherit {
                        parent,
                        child,
                        time,
                    }));
                }
            }
            ProcessEvent::Exec { pid } => {
                self.attempt(Pending::new(Task::Executed { pid, time }));
            }
            ProcessEvent::Code { pid, file } => {
                if let Some(file) = self.table.file(file)
                    && self.table.is_recorded(pid)
                    && !self.renew(pid, file, time)
                {
                    self.attempt(Pending::new(Task::Raise(Mapped {
                        pid,
                        file,
                        since: time,
                        begun: (time >= self.enabled).then_some(time),
                    })));
                }
            }
            ProcessEvent::Exit { pid } => {
                if self.table.has(pid) {
                    let _ = self.jobs.send(Job::ended(pid));
                }
            }
            ProcessEvent::Lost => _ = self.jobs.send(Job::LookAtAll { since: self.passed }),
        }
    }

    /// Whether an increment in a process is pending already. Then it is of what was mapped at this time, too.
    fn renew(&mut self, process: u32, of: usize, time: u64) -> bool {
        let mut pending = self.pending.iter_mut();
        let known = pending.find_map(|pending| match &mut pending.task {
            Task::Raise(mapped) if (mapped.pid, mapped.file) == (process, of) => Some(mapped),
            _ => None,
        });
        if let Some(mapped) = known {
            mapped.since = mapped.since.max(time);
            return true;
        }
        false
    }

    fn attempt(&mut self, pending: Pending) {
        let begun = Instant::now();
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
            Attempt::Again if self.pending.len() < MAX_PENDING => {
                self.postpone(pending, begun.elapsed());
            }
            Attempt::Again | Attempt::Unreached => {
                if let Task::Raise(mapped) = pending.task {
                    self.table.count_unreached(mapped);
                }
            }
            Attempt::Done | Attempt::Known => {}
        }
    }

    /// Has something tried again later. All that is pending may take a quarter of the time: any user's process may have very many mappings.
    fn postpone(&mut self, mut pending: Pending, taken: Duration) {
        let wait = pending.first.elapsed() / 4;
        let wait = wait.clamp(MIN_RETRY_INTERVAL, MAX_RETRY_INTERVAL);
        let all = u32::try_from(self.pending.len()).unwrap_or(u32::MAX);
        pending.next = Instant::now() + wait.max(taken * 4 * (all + 1));
        self.pending.push(pending);
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
        if attempt != Attempt::Again {
            self.raise_child(parent, child, time);
        }
        attempt
    }

    /// Increments the semaphores of a child that was forked at `time`, before those of its parent were incremented.
    fn raise_child(&mut self, parent: u32, child: u32, time: u64) {
        if !self.table.is_recorded(child) || is_shared(parent, child) {
            return;
        }
        for file in self.table.mapped(child, self.table.files()) {
            let mapped = Mapped {
                pid: child,
                file,
                since: time,
                begun: Some(time),
            };
            let begun = Instant::now();
            // One that has ended may have had its parent's semaphores.
            match self.raise(mapped) {
                Attempt::Again if self.pending.len() < MAX_PENDING => {
                    self.postpone(Pending::new(Task::Raise(mapped)), begun.elapsed());
                }
                Attempt::Again => self.table.count_unreached(mapped),
                Attempt::Done | Attempt::Known | Attempt::Unreached => {}
            }
        }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use usdtrec_attach::engine::{Counting, TaskFilter, UprobePmu};

    use super::*;
    use crate::shortfalls::Shortfalls;

    /// Any user's processes may have so many mappings that one attempt takes long, and never do what is waited for. The thread has a priority before all others.
    #[test]
    fn attempts_that_take_long_leave_the_cpu_to_others() {
        let counting = Counting::new(UprobePmu::find());
        let table = Table::new(
            Vec::new(),
            &TaskFilter::All,
            counting,
            Shortfalls::default(),
        );
        let events = ProcessEvents::open(&[]).unwrap();
        let mut urgent = Urgent::new(Arc::new(table), events, channel().0);
        let taken = Duration::from_millis(40);
        for number in 1..=100 {
            let begun = Instant::now();
            urgent.postpone(Pending::new(Task::Executed { pid: 1, time: 1 }), taken);
            let wait = urgent.pending.last().unwrap().next.duration_since(begun);
            assert!(wait >= taken * number);
        }
        urgent.postpone(
            Pending::new(Task::Executed { pid: 1, time: 1 }),
            Duration::ZERO,
        );
        let wait = urgent.pending.last().unwrap().next;
        assert!(wait <= Instant::now() + MAX_RETRY_INTERVAL);
    }
}
