//! Planting in the processes that recorded ones start, which are held meanwhile: in each by links of its own, as long as there are few, so that
//! nobody else has breakpoints; then in all processes of the files, once.
//!
//! A link of a process is asked at every hit in any process that has links, which costs each hit some 60 ns, and making one looks at all processes
//! that map the file. So there is a bound to their number and to the time that making them takes ([`Budget`](budget::Budget)). Links
//! of processes that have ended are closed in the background ([`Ended`](ended::Ended)).

mod budget;
mod ended;
mod follower;
mod hurry;
mod reason;
mod table;

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::super::release::{Descriptors, Release};
use super::attach::Later;
use super::control::{self, Control};
use super::hold::Hold;

use self::follower::Follower;
use self::table::Table;

pub(super) use self::reason::Reason;

/// How long the end waits for planting that has begun.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long is waited for the probes of a session that ends before it began.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A thread that waits for processes that are held. Dropping it lets all processes go.
#[derive(Debug)]
pub(super) struct Children {
    control: Control,
    /// The thread ends when this closes.
    stop: Option<PipeWriter>,
    /// Closes when the thread ends.
    ended: Receiver<()>,
    table: Arc<Table>,
    /// Links of the beginning.
    links: usize,
    _hold: Hold,
}

impl Children {
    /// From now on processes that begin are held until `later` is planted in them.
    pub(super) fn follow(mut hold: Hold, later: Later, control: &Control) -> io::Result<Self> {
        let own = || Control::of(control.as_fd().try_clone_to_owned()?, control::HEAD);
        let (stopped, stop) = io::pipe()?;
        let (sender, ended) = channel();
        let calls = hold
            .take_calls()
            .ok_or_else(|| io::Error::other("somebody takes the calls already"))?;
        let links = later.named.len();
        let table = Arc::new(Table::default());
        let named = later.named.iter().map(|linked| linked.pid).collect();
        for linked in later.named {
            table.add(linked.pid, vec![linked.link]);
        }
        let mut follower = Follower::new(
            calls,
            own()?,
            (later.own, later.everywhere),
            Arc::clone(&table),
        );
        let children = Self {
            control: own()?,
            stop: Some(stop),
            ended,
            table,
            links,
            _hold: hold,
        };
        children.control.set_released(false);
        // One that began while we planted was not held: it gets its probes before any hit counts.
        follower.begin(named, children.control.calls());
        thread::Builder::new()
            .name("children".to_owned())
            .spawn(move || {
                follower.run(&stopped);
                drop(sender);
            })?;
        Ok(children)
    }

    /// Lets all processes go, and gives what holds the probes.
    pub(super) fn end(&mut self) -> Vec<OwnedFd> {
        self.control.set_released(true);
        self.stop = None;
        // It sends nothing: this waits for its end.
        let _ = self.ended.recv_timeout(PATIENCE);
        self.table.take_all()
    }

    /// Links of the beginning.
    pub(super) const fn links(&self) -> usize {
        self.links
    }

    /// Why probes are in all processes of the files; `None` if they are not.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.table.reason()
    }

    /// How often planting failed, or may have left probes out.
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
