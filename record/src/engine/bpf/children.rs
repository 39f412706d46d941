//! Planting in all processes once a named one starts another, which is held meanwhile.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::attach::Later;
use super::control::{self, Control};
use super::hold::Hold;

/// How long the end waits for planting that has begun.
const PATIENCE: Duration = Duration::from_secs(2);

/// A thread that waits for the first process that is held. Dropping it lets all processes go.
#[derive(Debug)]
pub(super) struct Children {
    control: Control,
    /// The thread ends when this closes.
    stop: Option<PipeWriter>,
    planted: Receiver<Planted>,
    /// How often planting failed.
    failed: u64,
    _hold: Hold,
}

/// What was planted.
#[derive(Debug, Default)]
struct Planted {
    links: Vec<OwnedFd>,
    has_failed: bool,
}

impl Children {
    /// From now on processes that begin are held until `later` is planted.
    pub(super) fn follow(hold: Hold, later: Later, control: &Control) -> io::Result<Self> {
        let own = || Control::of(control.as_fd().try_clone_to_owned()?, control::HEAD);
        let (stopped, stop) = io::pipe()?;
        let (sender, planted) = channel();
        let (calls, theirs) = (hold.calls().try_clone_to_owned()?, own()?);
        let children = Self {
            control: own()?,
            stop: Some(stop),
            planted,
            failed: 0,
            _hold: hold,
        };
        children.control.set_released(false);
        // One that began while we planted was not held: it gets its probes before any hit counts.
        let called = children.control.calls() > 0;
        let plant = move || {
            let (links, error) = later.plant();
            theirs.set_released(true);
            Planted {
                links,
                has_failed: error.is_some(),
            }
        };
        if called {
            // Nobody listens only after an end.
            let _ = sender.send(plant());
            return Ok(children);
        }
        thread::Builder::new()
            .name("children".to_owned())
            .spawn(move || {
                let wanted = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
                let (calls, stopped) = (calls.as_fd(), stopped.as_fd());
                let mut polled = [wanted(calls), wanted(stopped)];
                while matches!(poll(&mut polled, None), Err(rustix::io::Errno::INTR)) {}
                if polled[1].revents().is_empty() {
                    let _ = sender.send(plant());
                }
            })?;
        Ok(children)
    }

    /// Lets all processes go, and gives what holds the probes.
    pub(super) fn end(&mut self) -> Vec<OwnedFd> {
        self.control.set_released(true);
        self.stop = None;
        let planted = self.planted.recv_timeout(PATIENCE).unwrap_or_default();
        self.failed += u64::from(planted.has_failed);
        planted.links
    }

    /// How often planting failed.
    pub(super) const fn failed(&self) -> u64 {
        self.failed
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.control.set_released(true);
    }
}
