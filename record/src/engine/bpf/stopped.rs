//! Losing nothing: a program that finds the ring filling up stops its process, which goes on when the ring is drained.
//!
//! Programs put the processes that they stop into a map, after the signal was sent. We take a process out first and let it
//! go on then: so none stays stopped without being in the map. A guard process does the same when we are gone.
//!
//! We may be held up: by a reader that does not read, a disk that does not write, or because we are stopped ourselves. When we have not
//! looked at the ring for 3 s, the guard lets all processes go on, and none is stopped until we look again.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::control::{self, Control};
use super::kept::{self, Kept};
use super::spared;
use super::sys::{self, MapKind};
use crate::RecordError;
use crate::planting::{Caution, Planting};
use crate::usage_error::UsageError;

/// The verb that runs [`guard_stopped`] in a process of its own.
pub const STOPPED_VERB: &str = "guard-stopped";

/// How long the guard looks for processes that were stopped as the recorder ended in order: its probes are gone then, as a rule.
const GUARD_TIME: Duration = Duration::from_millis(200);

/// How long it looks when the recorder was killed: a program may be preempted between the signal and the entry in the map, for long on a
/// busy machine, and nobody knows when the last one has ended. Nobody waits for the guard then.
const GUARD_TIME_KILLED: Duration = Duration::from_secs(10);

/// The guard waits for our end in steps of this length.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How long we may not look at the ring before processes go on.
const HELD_UP: Duration = Duration::from_secs(3);

/// Most processes that are spared.
const MOST_SPARED: u32 = 4096;

/// Most processes stopped at a time.
const MOST: u32 = 65_536;

/// The map of stopped processes.
#[derive(Debug)]
pub(super) struct Stopped {
    map: OwnedFd,
    spared: OwnedFd,
    guard: Child,
    /// For whoever heals when the guard is killed, too; the lock is held by the guard as well.
    _kept: Option<Kept>,
}

impl Stopped {
    /// Makes the map and starts the guard, which shuts the gate of `control` when we are gone.
    pub(super) fn new(control: &Control, planting: Planting<'_>) -> io::Result<Self> {
        heal(planting);
        let map = sys::create_map(MapKind::Hash, (4, 8, MOST), 0)?;
        let kept = Kept::new(map.as_fd()).map_err(|error| {
            let reason = error.to_string();
            (planting.say)(&Caution::NotKept { reason });
        });
        let kept = kept.ok();
        let spared = sys::create_map(MapKind::Hash, (4, 4, MOST_SPARED), 0)?;
        for pid in spared::spared().into_iter().take(MOST_SPARED as usize) {
            sys::insert(spared.as_fd(), pid)?;
        }
        control.set_stopping(true);
        // The guard gets the maps as its standard output and error, which it does not write to.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(STOPPED_VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(map.try_clone()?))
            .stderr(Stdio::from(control.as_fd().try_clone_to_owned()?));
        if let Some(kept) = &kept {
            command.arg(&kept.name);
            share(&mut command, kept.lock.as_raw_fd());
        }
        let guard = command
            .spawn()
            .inspect_err(|_| kept.iter().for_each(|kept| kept::forget(&kept.name)))?;
        Ok(Self {
            map,
            spared,
            guard,
            _kept: kept,
        })
    }

    /// The map of processes that are never stopped.
    pub(super) fn spared(&self) -> BorrowedFd<'_> {
        self.spared.as_fd()
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
        if let Some(mut stdin) = self.guard.stdin.take() {
            // Without the byte it looks for longer.
            let _ = stdin.write_all(&[0]);
        }
        let _ = self.guard.wait();
    }
}

/// Lets processes go on that recorders stopped which have been killed.
fn heal(planting: Planting<'_>) {
    let Ok(processes) = kept::stopped_processes(true) else {
        // What is wrong with the directory is said when it is to be used.
        return;
    };
    let continued = processes.iter().filter(|process| process.is_stopped);
    let pids: Vec<u32> = continued.map(|process| process.pid).collect();
    if !pids.is_empty() {
        (planting.say)(&Caution::Continued { pids });
    }
}

/// Lets a command inherit a descriptor.
fn share(command: &mut Command, descriptor: RawFd) {
    // SAFETY: fcntl(2) takes integers.
    let inherit = move || match unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: between fork and exec only fcntl(2) is called, on the child's own descriptor.
    unsafe { command.pre_exec(inherit) };
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

/// Waits until the recorder ends. Meanwhile processes are stopped only while it looks at the ring. Whether it ends in order, of
/// which a byte tells.
fn watch(control: &Control) -> bool {
    let mut suspended = false;
    loop {
        let stdin = io::stdin();
        let mut polled = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        if matches!(poll(&mut polled, Some(&STEP)), Ok(1)) {
            return matches!(stdin.lock().read(&mut [0]), Ok(1));
        }
        let is_held_up = control.not_looked().is_some_and(|time| time >= HELD_UP);
        if is_held_up {
            if !suspended {
                control.count_suspension();
            }
            control.set_stopping(false);
            let_go(io::stdout().as_fd());
        } else if suspended {
            control.set_stopping(true);
        }
        suspended = is_held_up;
    }
}

/// Waits until standard input closes, that is until the recorder has ended, then lets the processes go on that are in the
/// map given as standard output, and no hit count any more: the control map is standard error.
///
/// # Errors
/// [`RecordError::Usage`] if these are no such maps.
pub fn guard_stopped(kept: Option<&str>) -> Result<(), RecordError> {
    // The signals of the recorder's terminal are not meant for us.
    let _ = rustix::process::setsid();
    let no_maps = |_: io::Error| {
        RecordError::from(UsageError::Helper {
            verb: STOPPED_VERB,
            expected: "its standard output and error are maps",
        })
    };
    let control = io::stderr().as_fd().try_clone_to_owned();
    let control = control.and_then(|map| Control::of(map, control::HEAD));
    let control = control.map_err(no_maps)?;
    let time = if watch(&control) {
        GUARD_TIME
    } else {
        GUARD_TIME_KILLED
    };
    control.set_enabled(false);
    // A program that found the gate open may still be stopping its process.
    let begin = Instant::now();
    while begin.elapsed() < time {
        let_go(io::stdout().as_fd());
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Some(name) = kept {
        kept::forget(name);
    }
    Ok(())
}
