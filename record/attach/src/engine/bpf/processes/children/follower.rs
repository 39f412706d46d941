//! The thread that attaches to held processes.

use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};
use usdtrec_kernel::host::limits::HighPriority;
use usdtrec_kernel::host::process::pidfd;
use usdtrec_kernel::trace_clock;

use super::super::hold::{Call, Calls};
use super::table::Budget;
use super::table::{Ended, Table, close};
use crate::engine::bpf::attach::links::{Links, Planted, UnitLink};
use crate::engine::bpf::control::Control;
use crate::engine::events::event;
use crate::engine::outcome::EverywhereReason;

/// Maximum number of running processes with links of their own, besides the named ones.
const MAX_LINKED_PROCESSES: usize = 8;

/// Maximum number of ended processes whose links are not closed yet.
const MAX_UNCLOSED_PROCESSES: usize = 64;

/// Number of descriptors that are reserved for the rest of the recorder.
const SPARE_DESCRIPTORS: u64 = 256;

/// Process id of links to all processes.
const ALL: u32 = 0;

/// How long a process is held while its old links are closed, after a thread other than the first executed a program.
const EXECUTED_TIMEOUT: Duration = Duration::from_millis(500);

/// What the thread is woken for.
#[derive(Debug)]
pub(super) struct Woken {
    /// Has a byte for each request.
    pub(super) woken: PipeReader,
    pub(super) asked: Receiver<LinkRequest>,
}

/// Links that were created.
#[derive(Default)]
struct CreatedLinks {
    /// The links of each process, or of [`ALL`].
    links: Vec<(u32, Vec<UnitLink>)>,
    /// The first refusal.
    refusal: Option<io::Error>,
}

/// Answers calls.
#[derive(Debug)]
pub(super) struct Follower {
    calls: Calls,
    control: Control,
    own: Links,
    everywhere: Links,
    table: Arc<Table>,
    woken: Woken,
    /// Descriptors of the processes with links: they become readable when the processes end.
    living: HashMap<u32, OwnedFd>,
    /// Maximum number of them.
    most: usize,
    ended: Ended,
    budget: Budget,
}

impl Follower {
    pub(super) fn new(
        calls: Calls,
        control: Control,
        own: Links,
        everywhere: Links,
        table: Arc<Table>,
        woken: Woken,
    ) -> Self {
        Self {
            calls,
            control,
            own,
            everywhere,
            table,
            woken,
            living: HashMap::new(),
            most: 0,
            ended: Ended::default(),
            budget: Budget::new(now()),
        }
    }

    /// Takes over the processes that have links already.
    pub(super) fn begin(&mut self, named: Vec<u32>) {
        let named = named.into_iter().filter_map(|pid| Some((pid, pidfd(pid)?)));
        self.living = named.collect();
        let children = MAX_LINKED_PROCESSES.min(most_by_descriptors(self.own.len()));
        self.most = self.living.len() + children;
        if !self.calls.knows_all() {
            self.plant_everywhere(EverywhereReason::Early);
        }
    }

    /// Answers calls until `stopped` closes. Then all links are in the table.
    pub(super) fn run(mut self, stopped: &PipeReader) {
        let high_priority = HighPriority::begin();
        while self.wait(stopped) {
            let calls = self.calls.take();
            if self.table.reason().is_none() {
                self.answer(&calls);
            }
            self.take_requests();
            high_priority.at_usual_priority(|| self.ended.go_on());
        }
        let left = self.ended.take().into_iter();
        let left = left.map(|link| UnitLink {
            unit: None,
            file: None,
            link,
        });
        self.table.leave(left.collect());
    }

    /// Waits for calls and for processes that end. Returns `false` when it is to stop.
    fn wait(&mut self, stopped: &PipeReader) -> bool {
        let wanted = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled = vec![
            wanted(stopped.as_fd()),
            wanted(self.woken.woken.as_fd()),
            wanted(self.calls.as_fd()),
        ];
        let first = polled.len();
        let pids: Vec<u32> = self.living.keys().copied().collect();
        polled.extend(self.living.values().map(|process| wanted(process.as_fd())));
        let timeout = self.ended.due();
        let timeout = timeout.and_then(|due| Timespec::try_from(due).ok());
        // Interrupted by a signal: checks again.
        let _ = poll(&mut polled, timeout.as_ref());
        let has = |polled: &PollFd<'_>| !polled.revents().is_empty();
        if polled.first().is_some_and(has) {
            return false;
        }
        let is_woken = polled.get(1).is_some_and(has);
        let ended = polled.iter().skip(first).zip(pids);
        let ended: Vec<u32> = ended
            .filter_map(|(polled, pid)| has(polled).then_some(pid))
            .collect();
        drop(polled);
        if is_woken {
            // What it is woken for is in the channel.
            let _ = self.woken.woken.read(&mut [0; 64]);
        }
        for pid in ended {
            self.living.remove(&pid);
            self.ended.add(self.table.take(pid));
        }
        true
    }

    /// Attaches to the processes that called.
    fn answer(&mut self, calls: &[Call]) {
        let answered = self.may_link(calls).and_then(|()| {
            calls.iter().try_for_each(|call| {
                let token = call.token.ok_or(EverywhereReason::Special)?;
                self.link(*call, token)
            })
        });
        if let Err(reason) = answered
            && !self.table.has_ended()
        {
            self.plant_everywhere(reason);
        }
    }

    /// Adds links of further probes, and detaches and attaches units. The thread that waits for it may have ended.
    fn take_requests(&mut self) {
        while let Ok(request) = self.woken.asked.try_recv() {
            match request {
                LinkRequest::Add(Addition {
                    own,
                    everywhere,
                    added,
                }) => {
                    let is_added = self.add(own, everywhere);
                    let _ = added.send(is_added);
                }
                LinkRequest::Detach { unit, taken } => {
                    self.set_paused(unit, true);
                    let links = self.table.take_unit(unit);
                    if let Err(unsent) = taken.send(links) {
                        self.ended.add(unsent.0);
                    }
                }
                LinkRequest::Attach { unit, attached } => {
                    let _ = attached.send(self.attach(unit));
                }
            }
        }
    }

    fn set_paused(&mut self, unit: usize, is_paused: bool) {
        self.own.set_paused(unit, is_paused);
        self.everywhere.set_paused(unit, is_paused);
    }

    /// Attaches a unit again, to each process with links of its own, and to all processes if others have links.
    fn attach(&mut self, unit: usize) -> io::Result<()> {
        let created = self.plant_in_all(
            |pid| self.own.plant_unit_in(unit, pid),
            || self.everywhere.plant_unit_in(unit, ALL),
        );
        self.keep(created)?;
        self.set_paused(unit, false);
        Ok(())
    }

    /// Adds links to each process with links of its own, and to all processes if others have links. Returns `false` if the kernel refuses.
    fn add(&mut self, own: Links, everywhere: Links) -> bool {
        let created = self.plant_in_all(|pid| own.plant_in(pid), || everywhere.plant_everywhere());
        if self.keep(created).is_err() {
            return false;
        }
        self.own.append(own);
        self.everywhere.append(everywhere);
        let children = most_by_descriptors(self.own.len());
        self.most = self.most.min(self.living.len() + children);
        true
    }

    /// Creates links in each process with links of its own, and in all processes if others have links, up to the first that the kernel refuses.
    fn plant_in_all(
        &self,
        own: impl Fn(u32) -> Planted,
        everywhere: impl FnOnce() -> Planted,
    ) -> CreatedLinks {
        let mut created = CreatedLinks::default();
        for &pid in self.living.keys() {
            let Planted { links, error } = own(pid);
            created.links.push((pid, links));
            // One that has ended hits no more.
            created.refusal = error.filter(|error| !event::has_ended(error));
            if created.refusal.is_some() {
                return created;
            }
        }
        if self.table.reason().is_some() {
            let Planted { links, error } = everywhere();
            created.links.push((ALL, links));
            created.refusal = error;
        }
        created
    }

    /// Adds links to the table; closes them if the kernel has refused one.
    fn keep(&mut self, CreatedLinks { links, refusal }: CreatedLinks) -> io::Result<()> {
        if let Some(refusal) = refusal {
            let links = links.into_iter().flat_map(|(_, links)| links);
            self.ended.add(descriptors(links));
            return Err(refusal);
        }
        for (pid, links) in links {
            match pid {
                ALL => self.table.leave(links),
                pid => self.table.add(pid, links),
            }
        }
        Ok(())
    }

    /// Whether these processes may have links of their own.
    fn may_link(&self, calls: &[Call]) -> Result<(), EverywhereReason> {
        if self.control.is_released() {
            return Err(EverywhereReason::Unheld);
        }
        if calls.iter().any(|call| call.token.is_none()) {
            return Err(EverywhereReason::Special);
        }
        if self.living.len() + calls.len() > self.most
            || self.ended.len() > MAX_UNCLOSED_PROCESSES * self.own.len()
        {
            return Err(EverywhereReason::Many);
        }
        Ok(())
    }

    /// Attaches to a held process, and releases it.
    fn link(&mut self, Call { pid, since, .. }: Call, token: u32) -> Result<(), EverywhereReason> {
        self.close_former(pid)?;
        // From here on the end of the process is noticed, so that its id cannot be another's.
        let Some(process) = pidfd(pid).filter(|_| self.calls.is_held(pid, token)) else {
            return Ok(());
        };
        let planted = self.own.plant_in(pid);
        if let Some(error) = planted.error {
            self.ended.add(descriptors(planted.links));
            return match error.raw_os_error() {
                Some(libc::ESRCH) => Ok(()),
                _ => Err(EverywhereReason::Refused),
            };
        }
        // If it has ended, the links may be those of another process with the same id, and no process is released.
        if has_ended(&process) {
            self.ended.add(descriptors(planted.links));
            return Ok(());
        }
        self.table.add(pid, planted.links);
        self.living.insert(pid, process);
        self.calls.let_go(pid, token);
        if self.budget.spend(since, now()) {
            Ok(())
        } else {
            Err(EverywhereReason::Slow)
        }
    }

    /// Closes the links of a process whose first thread was replaced by another thread: the kernel still applies them to the process.
    fn close_former(&mut self, pid: u32) -> Result<(), EverywhereReason> {
        let former = self.table.take(pid);
        self.living.remove(&pid);
        if former.is_empty() || close(former).wait(EXECUTED_TIMEOUT) {
            Ok(())
        } else {
            Err(EverywhereReason::Executed)
        }
    }

    /// Attaches to all processes of the files, and releases all held processes.
    fn plant_everywhere(&mut self, reason: EverywhereReason) {
        let planted = self.everywhere.plant_everywhere();
        if planted.error.is_some() {
            self.table.count_failure();
        }
        // A link that is being closed may be the last one that keeps the breakpoints of a process whose first thread has ended.
        if reason == EverywhereReason::Special && self.ended.is_closing() {
            self.table.count_failure();
        }
        self.table.leave(planted.links);
        self.table.set_reason(reason);
        self.control.set_released(true);
    }
}

fn descriptors(links: impl IntoIterator<Item = UnitLink>) -> Vec<OwnedFd> {
    links.into_iter().map(|link| link.link).collect()
}

/// The time of the clock that programs read.
fn now() -> Duration {
    Duration::from_nanos(trace_clock::now())
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
    !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(0))
}

/// Maximum number of processes for whose links, and one more descriptor each, there are descriptors.
fn most_by_descriptors(links: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let free = limit.saturating_sub(open + SPARE_DESCRIPTORS);
    usize::try_from(free).unwrap_or(usize::MAX) / (links + 1)
}

/// Maximum number of processes that links are created for one after the other: each takes the kernel about 10 ms, in which hits are missing.
const MAX_PROCESSES: usize = 4;

/// What the thread that gives processes their links is asked for.
#[derive(Debug)]
pub(super) enum LinkRequest {
    Add(Addition),
    /// Takes the links of a unit, which are to be closed.
    Detach {
        unit: usize,
        taken: Sender<Vec<OwnedFd>>,
    },
    /// Attaches a unit again.
    Attach {
        unit: usize,
        attached: Sender<io::Result<()>>,
    },
}

/// Links of added probes.
#[derive(Debug)]
pub(super) struct Addition {
    /// For processes that get links of their own.
    pub(super) own: Links,
    /// For the others, in all processes of the files.
    pub(super) everywhere: Links,
    /// Takes whether they were added.
    pub(super) added: Sender<bool>,
}

/// Adds links, in the thread that gives processes theirs.
#[derive(Debug)]
pub(in crate::engine::bpf) struct LinkAdder {
    pub(super) table: Arc<Table>,
    pub(super) requests: Sender<LinkRequest>,
    pub(super) wake: PipeWriter,
}

impl LinkAdder {
    /// Whether there are few enough processes with links of their own.
    pub(in crate::engine::bpf) fn is_fast(&self) -> bool {
        self.table.processes() <= MAX_PROCESSES
    }

    /// Whether probes are attached to all processes of the files, too.
    pub(in crate::engine::bpf) fn is_everywhere(&self) -> bool {
        self.table.reason().is_some()
    }

    /// Attaches to the processes with links of their own, and from now on to those that get such links. If the kernel refuses, returns
    /// `false`, and links that were created are closed a little later.
    pub(in crate::engine::bpf) fn add(&self, own: Links, everywhere: Links) -> bool {
        let (added, answer) = channel();
        let addition = Addition {
            own,
            everywhere,
            added,
        };
        self.ask(LinkRequest::Add(addition)).is_ok() && answer.recv().unwrap_or(false)
    }

    /// Takes the links of a unit, which are to be closed. Processes that begin from now on get none.
    ///
    /// # Errors
    /// The recording has ended.
    pub(in crate::engine::bpf) fn take_unit(&self, unit: usize) -> io::Result<Vec<OwnedFd>> {
        let (taken, answer) = channel();
        self.ask(LinkRequest::Detach { unit, taken })?;
        answer.recv().map_err(io::Error::other)
    }

    /// Attaches a unit again to the processes with links of their own, and from now on to those that get such links.
    ///
    /// # Errors
    /// The kernel refuses, or the recording has ended.
    pub(in crate::engine::bpf) fn attach_unit(&self, unit: usize) -> io::Result<()> {
        let (attached, answer) = channel();
        self.ask(LinkRequest::Attach { unit, attached })?;
        answer.recv().map_err(io::Error::other)?
    }

    fn ask(&self, request: LinkRequest) -> io::Result<()> {
        self.requests.send(request).map_err(io::Error::other)?;
        (&self.wake).write_all(&[0])
    }
}
