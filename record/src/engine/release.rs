//! Closing what holds probes planted, in processes of their own.
//!
//! The kernel takes long over such descriptors: about a tenth of a second for each uprobe perf event, and for a BPF link as long as
//! any sleepable program of the host runs. A process that closes them, or exits with them open, cannot be ended meanwhile, not even by
//! SIGKILL. So a helper process inherits the descriptors, we close our copies (which takes no time while the helper has its
//! own), and whoever waits for us does not wait for the kernel. A [`Keeper`] has them, too, until the helper's processes are about to end: so
//! nobody is the last who has them and can be killed while closing them ([`closers`](super::closers)).

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::closers::{MOST, RELEASE_VERB};
use super::keeper::Keeper;
use crate::RecordError;
use crate::error::{Interruption, Removal};

/// Processes that close perf events at a time. The kernel does most of that one after the other, under a lock that every tracer of the host
/// needs: more gain a third at most (10 s, 8 s, 7 s for 80 events with 1, 4 and 64), and the others wait behind all of them. It can wait for
/// the programs of many links at once.
const EVENTS_AT_ONCE: usize = 4;

/// How long is waited after a signal that ended the planting.
const PATIENCE: Duration = Duration::from_secs(2);

/// What holds probes planted.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// BPF links to many sites each.
    pub(crate) links: Vec<OwnedFd>,
    /// Perf events of sites, and BPF links to them.
    pub(crate) events: Vec<OwnedFd>,
}

/// Descriptors that are being closed. Dropping it leaves the rest to the helper.
#[derive(Debug)]
pub(crate) struct Release {
    helper: Option<Child>,
    /// One byte comes for each descriptor that is closed.
    progress: Option<PipeReader>,
    total: usize,
    closed: usize,
    begun: Instant,
    /// When the last descriptor was closed.
    moved: Instant,
}

impl Release {
    /// Begins to close them.
    pub(crate) fn start(descriptors: Descriptors) -> Self {
        let Descriptors { links, events } = descriptors;
        let at_once = if events.is_empty() {
            MOST
        } else {
            EVENTS_AT_ONCE
        };
        let descriptors: Vec<_> = links.into_iter().chain(events).collect();
        let now = Instant::now();
        let mut release = Self {
            helper: None,
            progress: None,
            total: descriptors.len(),
            closed: 0,
            begun: now,
            moved: now,
        };
        if descriptors.is_empty() {
            return release;
        }
        match io::pipe() {
            Ok((progress, closed)) => {
                release.progress = Some(progress);
                release.helper = hand_over(descriptors, at_once, closed);
            }
            // Without a descriptor for the pipe there is none for a helper.
            Err(_) => drop(descriptors),
        }
        release
    }

    /// Descriptors that are to be closed.
    pub(crate) const fn total(&self) -> usize {
        self.total
    }

    /// Descriptors that are not closed yet.
    pub(crate) const fn left(&self) -> usize {
        if self.progress.is_some() {
            self.total - self.closed
        } else {
            0
        }
    }

    /// Process id of the helper.
    pub(crate) fn helper(&self) -> Option<u32> {
        self.helper.as_ref().map(Child::id)
    }

    /// How long nothing was closed.
    pub(crate) fn stalled(&self) -> Duration {
        self.moved.elapsed()
    }

    /// How long closing what is left takes at the pace so far; `None` before the first.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let each = self.begun.elapsed() / u32::try_from(self.closed.max(1)).ok()?;
        (self.closed > 0).then(|| each * u32::try_from(self.left()).unwrap_or(u32::MAX))
    }

    /// Waits until all are closed, or for so long. Whether all are.
    pub(crate) fn wait(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.progress.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            self.read_progress(left);
            if left.is_zero() {
                break;
            }
        }
        self.progress.is_none()
    }

    /// What is said when a signal ends the planting: closing goes on without us if it takes long.
    pub(crate) fn interrupted(mut self) -> RecordError {
        let helper = if self.wait(PATIENCE) {
            None
        } else {
            self.helper()
        };
        let removal = helper.map(|pid| Removal {
            pid,
            left: self.left(),
            total: self.total,
        });
        Interruption::Signal(removal).into()
    }

    /// Takes notice of what was closed within this time.
    fn read_progress(&mut self, time: Duration) {
        let Some(progress) = &mut self.progress else {
            return;
        };
        let timeout = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        };
        let readable = poll(
            &mut [PollFd::from_borrowed_fd(progress.as_fd(), PollFlags::IN)],
            Some(&timeout),
        );
        if !matches!(readable, Ok(1)) {
            return;
        }
        let mut bytes = [0; 256];
        match progress.read(&mut bytes) {
            Ok(count @ 1..) => {
                self.closed = (self.closed + count).min(self.total);
                self.moved = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The helper has ended, and with it all its descriptors.
            Ok(0) | Err(_) => {
                self.progress = None;
                if let Some(mut helper) = self.helper.take() {
                    let _ = helper.wait();
                }
            }
        }
    }
}

/// Gives descriptors to a helper. `None`: a thread of this process closes them, because there can be no other process.
fn hand_over(descriptors: Vec<OwnedFd>, at_once: usize, closed: PipeWriter) -> Option<Child> {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let keeper = Keeper::of(&numbers).ok();
    let started = closed
        .try_clone()
        .and_then(|closed| start_helper(&numbers, keeper.as_ref(), at_once, closed));
    let Ok(mut helper) = started else {
        drop(keeper);
        std::thread::spawn(move || close_all(descriptors, &closed));
        return None;
    };
    // The helper begins when it has read the list: by then ours are closed, and none of them is the last copy. The keeper goes after
    // them, as the helper may have been killed.
    drop(descriptors);
    drop(keeper);
    if let Some(mut list) = helper.stdin.take() {
        let text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        // If the helper was killed, the kernel has closed its copies.
        let _ = list.write_all(text.join(" ").as_bytes());
    }
    Some(helper)
}

fn start_helper(
    numbers: &[RawFd],
    keeper: Option<&Keeper>,
    at_once: usize,
    closed: PipeWriter,
) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args([RELEASE_VERB, &at_once.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::from(closed))
        .stderr(Stdio::null());
    let mut numbers = numbers.to_vec();
    if let Some(keeper) = keeper.map(|keeper| keeper.as_fd().as_raw_fd()) {
        command.arg(keeper.to_string());
        numbers.push(keeper);
    }
    let inherit = move || {
        // The signals of our terminal are not meant for it.
        let _ = rustix::process::setsid();
        for &number in &numbers {
            // SAFETY: fcntl(2) takes integers; the descriptors are the child's copies.
            if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec only setsid(2) and fcntl(2) are called; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(inherit) };
    command.spawn()
}

/// Closes them here, with a byte for each.
fn close_all(descriptors: Vec<OwnedFd>, closed: &PipeWriter) {
    for descriptor in descriptors {
        drop(descriptor);
        // The recorder may have ended.
        let _ = (&*closed).write_all(&[0]);
    }
}
