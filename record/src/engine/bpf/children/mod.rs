//! Attaching to the processes that recorded ones start, which are held meanwhile: to each by links of its own, as long as there are few, so
//! that no other process has breakpoints; then to all processes of the files, once.
//!
//! The kernel checks the links of all processes at each hit in any of them, which costs about 60 ns per link, and creating a link visits
//! all processes that map the file. So their number and the time for creating them are limited ([`Budget`](budget::Budget)). Links of
//! processes that have ended are closed in the background ([`Ended`](ended::Ended)).

mod budget;
mod ended;
mod everywhere;
mod follower;
mod hurry;
mod table;

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::super::release::{Descriptors, Release};
use super::attachment::Later;
use super::control::{self, Control};
use super::hold::{HeldProcesses, Hold};

use self::follower::Follower;
use self::table::Table;

pub use self::everywhere::EverywhereReason;

/// How long the end of the recording waits for attaching that has begun.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for the removal of the probes of a session that ends before it began.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The thread that waits for held processes. Dropping this releases all processes.
#[derive(Debug)]
pub(super) struct Children {
    control: Control,
    /// The thread ends when this closes.
    stop: Option<PipeWriter>,
    /// Closes when the thread ends.
    ended: Receiver<()>,
    table: Arc<Table>,
    held: Arc<HeldProcesses>,
    /// Links of the named processes.
    links: usize,
    _hold: Hold,
}

impl Children {
    /// From now on new processes are held until `later` is attached to them.
    pub(super) fn follow(mut hold: Hold, later: Later, control: &Control) -> io::Result<Self> {
        let own = || Control::of(control.as_fd().try_clone_to_owned()?, control::HEAD);
        let (stopped, stop) = io::pipe()?;
        let (sender, ended) = channel();
        let calls = hold
            .take_calls()
            .ok_or_else(|| io::Error::other("somebody takes the calls already"))?;
        let links = later.named.len();
        let held = Arc::clone(calls.held());
        let table = Arc::new(Table::default());
        let named = later.named.iter().map(|linked| linked.pid).collect();
        for linked in later.named {
            table.add(linked.pid, vec![linked.link]);
        }
        let mut follower = Follower::new(
            calls,
            own()?,
            later.own,
            later.everywhere,
            Arc::clone(&table),
        );
        let children = Self {
            control: own()?,
            stop: Some(stop),
            ended,
            table,
            held,
            links,
            _hold: hold,
        };
        children.control.set_released(false);
        // A process that was started in the meantime was not held; it gets its probes before the programs are enabled.
        follower.begin(named, children.control.calls());
        thread::Builder::new()
            .name("children".to_owned())
            .spawn(move || {
                follower.run(&stopped);
                drop(sender);
            })?;
        Ok(children)
    }

    /// Releases all processes. Returns the descriptors that keep the probes attached.
    pub(super) fn end(&mut self) -> Vec<OwnedFd> {
        // In this order: the reason is stored before a reader can see that all processes are released.
        self.table.end();
        self.control.set_released(true);
        self.stop = None;
        // Nothing is sent: this waits for the end of the thread.
        let _ = self.ended.recv_timeout(PATIENCE);
        self.table.take_all()
    }

    /// Who is held.
    pub(super) const fn held(&self) -> &Arc<HeldProcesses> {
        &self.held
    }

    /// Number of links that were there when following began.
    pub(super) const fn links(&self) -> usize {
        self.links
    }

    /// Why probes are attached to all processes of the files; `None` if they are not.
    pub(super) fn reason(&self) -> Option<EverywhereReason> {
        self.table.reason()
    }

    /// How often attaching failed, or probes may be missing in a process.
    pub(super) fn failed(&self) -> u64 {
        self.table.failed()
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let links = self.end();
        Release::start(Descriptors {
            links,
            events: Vec::new(),
        })
        .wait(LAST_PATIENCE);
    }
}
