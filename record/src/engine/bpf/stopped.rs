//! Losing nothing: a program that finds the ring filling up stops its process, which goes on when the ring is drained.
//!
//! Programs put the processes that they stop into a map, after the signal was sent. We take a process out first and let it
//! go on then: so none stays stopped without being in the map. A guard process does the same when we are gone.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::control::Control;
use super::sys::{self, MapKind};
use crate::RecordError;

/// The verb that runs [`guard_stopped`] in a process of its own.
pub const STOPPED_VERB: &str = "guard-stopped";

/// How long the guard looks for processes that were stopped as the recorder ended.
const GUARD_TIME: Duration = Duration::from_millis(200);

/// Most processes stopped at a time.
const MOST: u32 = 65_536;

/// The map of stopped processes.
#[derive(Debug)]
pub(super) struct Stopped {
    map: OwnedFd,
    guard: Child,
}

impl Stopped {
    /// Makes the map and starts the guard, which shuts the gate of `control` when we are gone.
    pub(super) fn new(control: &Control) -> io::Result<Self> {
        let map = sys::create_map(MapKind::Hash, (4, 4, MOST), 0)?;
        // The guard gets the maps as its standard output and error, which it does not write to.
        let guard = Command::new("/proc/self/exe")
            .arg(STOPPED_VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(map.try_clone()?))
            .stderr(Stdio::from(control.as_fd().try_clone_to_owned()?))
            .spawn()?;
        Ok(Self { map, guard })
    }

    /// Lets all stopped processes go on.
    pub(super) fn let_go(&self) {
        let_go(self.map.as_fd());
    }
}

impl AsFd for Stopped {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Lets those go on that are in the map now, each once: one that runs on may be stopped again at once.
fn let_go(map: BorrowedFd<'_>) {
    let mut processes = Vec::new();
    // Key 0 is no process: what follows a key that is not there is the first.
    let mut last = 0;
    while processes.len() < MOST as usize
        && let Ok(process) = sys::next_key(map, last)
    {
        processes.push(process);
        last = process;
    }
    for process in processes {
        // Out of the map first. If that fails another has done it.
        let _ = sys::remove(map, process);
        if let Some(pid) = process.try_into().ok().and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// Waits until standard input closes, that is until the recorder has ended, then lets the processes go on that are in the
/// map given as standard output, and no hit count any more: the control map is standard error.
///
/// # Errors
/// [`RecordError::Usage`] if these are no such maps.
pub fn guard_stopped() -> Result<(), RecordError> {
    // The signals of the recorder's terminal are not meant for us.
    let _ = rustix::process::setsid();
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let no_maps = |_: io::Error| {
        RecordError::Usage(format!(
            "{STOPPED_VERB} is started by record: its standard output and error are maps"
        ))
    };
    let control = io::stderr().as_fd().try_clone_to_owned();
    let control = control.and_then(|map| Control::of(map, 1));
    control.map_err(no_maps)?.set_enabled(false);
    // A program that found the gate open may still be stopping its process.
    let begin = Instant::now();
    while begin.elapsed() < GUARD_TIME {
        let_go(io::stdout().as_fd());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
