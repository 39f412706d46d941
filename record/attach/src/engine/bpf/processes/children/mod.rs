//! Attaching to the processes that recorded ones start, which are held meanwhile: to each by links of its own, as long as there are few, so
//! that no other process has breakpoints; then to all processes of the files. The [invariants](super) are one level up.
//!
//! # Which processes have breakpoints
//!
//! A link can have a pid: the kernel inserts the breakpoints in that process only, and other processes of the same file
//! have no breakpoint and no raised semaphore. With `-t` and `--no-inherit` this is all. With `-p` and `-- CMD`, hits
//! of children are recorded from the first one on. A child inherits breakpoints and semaphores, but a link for its
//! parent ignores the child's hits. So the child is held (module `hold`) until it has links with its own pid.
//!
//! For each kind of site there are two programs: that of links with a pid and that of links for all processes.
//!
//! # Limits
//!
//! * At each hit in any process with a breakpoint the kernel calls every consumer of the site (about 60 ns each). So at
//!   most 8 living children get links of their own.
//! * Creating a link visits all processes that map the file and, unless one has just passed, waits for an RCU grace
//!   period (about 10 ms). So children are held for half a second altogether, and for a twentieth of the time after
//!   that ([`Budget`](table::Budget)).
//! * At most 64 processes have ended whose links are not closed yet. A pidfd reports the end of a process. Its links
//!   are closed in batches by the helpers that close links at the end ([`Ended`](table::Ended)).
//! * Beyond a limit the probes are attached to all processes of the files, and `-v` reports the reason.
//!
//! # Added probes
//!
//! Links of probes that are added while recording are created by the same thread ([`follower`]), so that a child gets either all links or
//! is held until it has them.
//!
//! # Special processes
//!
//! * If a thread replaces the first (`execve`), the kernel still takes the old links for those of the process.
//! * A child of `vfork` shares its parent's memory and has links of its own like any other child.
//! * The held children of a real-time process could occupy all CPUs. So such a process is itself held when it is
//!   executed, until the probes are attached to all processes. If one of the named processes is real-time when
//!   recording starts, they are from the start.

mod follower;
mod table;

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use self::follower::{Follower, LinkRequest, Woken};
use self::table::Table;
use super::super::attach::unit_links::Later;
use super::super::control::{self, Control};
use super::hold::Hold;
use super::hold::work::HeldProcesses;
use crate::engine::outcome::EverywhereReason;
use crate::engine::release::Descriptors;

pub(in crate::engine::bpf) use self::follower::LinkAdder;

/// How long the end of the recording waits for attaching that has begun.
const ATTACH_END_LIMIT: Duration = Duration::from_secs(2);

/// The thread that waits for held processes. Dropping this releases all processes.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Children {
    control: Control,
    /// The thread ends when this closes.
    stop: Option<PipeWriter>,
    /// Closes when the thread ends.
    ended: Receiver<()>,
    table: Arc<Table>,
    requests: Sender<LinkRequest>,
    /// Wakes the thread for them.
    wake: PipeWriter,
    held: Arc<HeldProcesses>,
    /// Links of the named processes.
    links: usize,
    _hold: Hold,
}

impl Children {
    /// From now on new processes are held until `later` is attached to them.
    pub(in crate::engine::bpf) fn follow(
        mut hold: Hold,
        later: Later,
        control: &Control,
    ) -> io::Result<Self> {
        let own = || Control::from_descriptor(control.as_fd().try_clone_to_owned()?, control::HEAD);
        let (stopped, stop) = io::pipe()?;
        let (woken, wake) = io::pipe()?;
        let (sender, ended) = channel();
        let (requests, asked) = channel();
        let calls = hold
            .take_calls()
            .ok_or_else(|| io::Error::other("the calls are already taken"))?;
        let links = later.named.len();
        let held = Arc::clone(calls.held());
        let table = Arc::new(Table::default());
        for linked in later.named {
            table.add(linked.pid, vec![linked.link]);
        }
        let mut follower = Follower::new(
            calls,
            own()?,
            later.own,
            later.everywhere,
            Arc::clone(&table),
            Woken { woken, asked },
        );
        let children = Self {
            control: own()?,
            stop: Some(stop),
            ended,
            table,
            requests,
            wake,
            held,
            links,
            _hold: hold,
        };
        children.control.set_released(false);
        // A process that was started in the meantime was not held; it gets its probes before the programs are enabled.
        follower.begin(later.processes);
        thread::Builder::new()
            .name("children".to_owned())
            .spawn(move || {
                follower.run(&stopped);
                drop(sender);
            })?;
        Ok(children)
    }

    /// Releases all processes. Returns the descriptors that keep the probes attached.
    pub(in crate::engine::bpf) fn end(&mut self) -> Vec<OwnedFd> {
        // In this order: the reason is stored before a reader can see that all processes are released.
        self.table.end();
        self.control.set_released(true);
        self.stop = None;
        // Nothing is sent: this waits for the end of the thread.
        let _ = self.ended.recv_timeout(ATTACH_END_LIMIT);
        self.table.take_all()
    }

    /// What adds links.
    pub(in crate::engine::bpf) fn adder(&self) -> io::Result<LinkAdder> {
        Ok(LinkAdder {
            table: Arc::clone(&self.table),
            requests: self.requests.clone(),
            wake: self.wake.try_clone()?,
        })
    }

    /// The processes that are held.
    pub(in crate::engine::bpf) const fn held(&self) -> &Arc<HeldProcesses> {
        &self.held
    }

    /// Number of links that were there when following began.
    pub(in crate::engine::bpf) const fn links(&self) -> usize {
        self.links
    }

    /// Why probes are attached to all processes of the files; `None` if they are not.
    pub(in crate::engine::bpf) fn reason(&self) -> Option<EverywhereReason> {
        self.table.reason()
    }

    /// How often attaching failed, or probes may be missing in a process.
    pub(in crate::engine::bpf) fn failed(&self) -> u64 {
        self.table.failed()
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let descriptors = Descriptors {
            links: self.end(),
            events: Vec::new(),
        };
        descriptors.close();
    }
}
