//! Lossless recording: a program that finds the ring nearly full stops its process, which is continued when the ring is drained.
//!
//! A program sends the signal, and then adds the process to a map ([`stopped_map`]), from which the recorder continues it. So no process
//! stays stopped without being in the map. A guard process does the same after the recorder has ended.
//!
//! For lossless recording the recorder may be delayed: by a reader that does not read, by a slow disk, or because it is stopped itself. If it has not drained the
//! ring for 3 s, the guard continues all processes, and none is stopped until the recorder drains the ring again.
//!
//! At a new file ([`StopReason::NewFile`]) a process is stopped for [`MAX_HOLD`] at most: then the guard continues it, whatever the recorder does.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::control::{self, Control};
use super::super::processes::hold::work::MAX_HOLD;
use super::super::sys;
use super::exempt_processes::ExemptProcesses;
use super::pinned_map::{self, GUARD_TIME, PinnedEntry, Repair};
use super::stopped_map;
use crate::clocks::trace_clock;
use crate::engine::guard_process::{GuardDeath, GuardProcess, GuardTask};
use crate::error::RecordError;
use crate::host::privilege;
use crate::recording::attach_callbacks::Caution;
use crate::stop_reason::StopReason;
use crate::usage_error::{HelperInput, UsageError};

/// The first argument of the process that runs [`guard_stopped`].
pub const STOPPED_VERB: &str = "guard-stopped";

/// How long the guard checks the map if the recorder was killed: a program may be preempted between the signal and the map update, for long on a
/// busy machine, and it is unknown when the last program has ended. No process waits for the guard then.
const GUARD_TIME_KILLED: Duration = Duration::from_secs(10);

/// Interval at which the guard checks the recorder.
const PERIOD: Duration = Duration::from_millis(100);
/// After this time the guard continues a process that is stopped at a new file: [`MAX_HOLD`] is not exceeded by its interval.
pub(in crate::engine::bpf) const GUARD_HOLD: Duration = MAX_HOLD.saturating_sub(PERIOD);
/// The interval.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: PERIOD.as_nanos() as i64,
};

/// How long the recorder may not drain the ring before the guard continues processes.
const HELD_UP: Duration = Duration::from_secs(3);

/// Maximum number of exempt processes.
const MAX_EXEMPT_PROCESSES: u32 = 4096;

/// The map of stopped processes.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Stopped {
    map: OwnedFd,
    reason: StopReason,
    exempt: OwnedFd,
    guard: GuardProcess,
    /// The pinned map, for the case that the guard is killed, too. The guard also holds its lock.
    kept: Option<PinnedEntry>,
}

impl Stopped {
    /// Creates the map and starts the guard, which disables the programs by `control` when the recorder has ended.
    ///
    /// # Errors
    /// This process may not continue those of other users, or an error of bpf(2) or of starting the guard.
    pub(in crate::engine::bpf) fn new(
        reason: StopReason,
        control: &Control,
        say: &dyn Fn(&Caution),
    ) -> io::Result<Self> {
        // Programs can stop any process.
        if !privilege::may_signal() {
            return Err(io::Error::other(
                "without CAP_KILL processes of other users could be stopped and not continued",
            ));
        }
        heal(say);
        let map = stopped_map::create()?;
        let kept = match PinnedEntry::new(map.as_fd()) {
            Ok(kept) => Some(kept),
            Err(error) => {
                say(&Caution::NotKept { reason, error });
                None
            }
        };
        let exempt = sys::create_ids(MAX_EXEMPT_PROCESSES)?;
        let never = ExemptProcesses::find();
        let all = never.ancestors.iter().chain(&never.readers);
        for pid in all.take(MAX_EXEMPT_PROCESSES as usize) {
            sys::insert(exempt.as_fd(), *pid)?;
        }
        if !never.readers.is_empty() {
            say(&Caution::NeverStopped {
                reason,
                pids: never.readers.into_iter().collect(),
            });
        }
        // Those that map files are stopped when the recording has begun.
        control.set_stopping(reason == StopReason::FullRing);
        let guard = start_guard(reason, map.as_fd(), control, kept.as_ref())
            .inspect_err(|_| kept.iter().for_each(|kept| pinned_map::forget(&kept.name)))?;
        Ok(Self {
            map,
            reason,
            exempt,
            guard: GuardProcess::new(GuardTask::StoppedProcesses, guard),
            kept,
        })
    }

    /// Starts another guard if it was killed. Without one, no process is stopped. Returns that it was killed.
    pub(in crate::engine::bpf) fn replace_guard(
        &mut self,
        control: &Control,
    ) -> Option<GuardDeath> {
        let (map, kept) = (self.map.as_fd(), self.kept.as_ref());
        let start = || start_guard(self.reason, map, control, kept);
        let death = self.guard.replace(start)?;
        let may_stop = death.failure.is_none();
        match self.reason {
            // The guard may have suspended it.
            StopReason::FullRing => control.set_stopping(may_stop),
            StopReason::NewFile => control.set_holding(may_stop),
        }
        Some(death)
    }

    /// Whether a process is in the map.
    pub(in crate::engine::bpf) fn contains(&self, pid: u32) -> bool {
        stopped_map::note_of(self.map.as_fd(), pid).is_some()
    }

    /// Continues a process, if it is in the map.
    pub(in crate::engine::bpf) fn continue_process(&self, pid: u32) {
        if let Some(stop) = stopped_map::note_of(self.map.as_fd(), pid) {
            stopped_map::continue_process(self.map.as_fd(), stop);
        }
    }

    /// Continues the processes of the map that have been stopped for so long, and are still those that were stopped.
    pub(in crate::engine::bpf) fn continue_after(&self, time: Duration) {
        let_go(self.map.as_fd(), time);
    }

    /// The map of processes that are never stopped.
    pub(in crate::engine::bpf) fn exempt(&self) -> BorrowedFd<'_> {
        self.exempt.as_fd()
    }
}

impl AsFd for Stopped {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Without that the guard checks for longer.
        self.guard.say_end();
        self.guard.release();
        self.guard.wait();
    }
}

/// Continues processes that killed recorders had stopped.
fn heal(say: &dyn Fn(&Caution)) {
    let Ok(processes) = pinned_map::stopped_processes(Repair::Now) else {
        // Errors of the directory are reported when it is used.
        return;
    };
    let continued = processes.iter().filter(|process| process.is_stopped);
    let pids: Vec<u32> = continued.map(|process| process.pid).collect();
    if !pids.is_empty() {
        say(&Caution::Continued { pids });
    }
}

/// Starts the guard, which inherits the maps as its standard output and error, to which it does not write.
fn start_guard(
    reason: StopReason,
    map: BorrowedFd<'_>,
    control: &Control,
    kept: Option<&PinnedEntry>,
) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command
        .args([STOPPED_VERB, reason.word()])
        .stdin(Stdio::piped())
        .stdout(Stdio::from(map.try_clone_to_owned()?))
        .stderr(Stdio::from(control.as_fd().try_clone_to_owned()?));
    if let Some(kept) = kept {
        command.arg(&kept.name);
        share(&mut command, kept.lock.as_raw_fd());
    }
    command.spawn()
}

/// Lets a command inherit a descriptor.
fn share(command: &mut Command, descriptor: RawFd) {
    // SAFETY: fcntl(2) takes integers.
    let inherit = move || match unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: only fcntl(2) is called between fork and exec, on the child's own descriptor.
    unsafe { command.pre_exec(inherit) };
}

/// Continues the processes that are in the map now and have been stopped for so long, each once.
fn let_go(map: BorrowedFd<'_>, time: Duration) {
    let now = trace_clock::boot();
    for stop in stopped_map::stopped(map) {
        if Duration::from_nanos(now.saturating_sub(stop.time)) >= time {
            stopped_map::continue_process(map, stop);
        }
    }
}

/// Waits until the recorder ends, and continues processes that would be stopped for too long. Returns whether it ended normally, which it
/// signals with a byte.
fn watch(reason: StopReason, control: &Control) -> bool {
    let mut suspended = false;
    loop {
        let stdin = io::stdin();
        let mut polled = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        if matches!(poll(&mut polled, Some(&STEP)), Ok(1)) {
            return matches!(stdin.lock().read(&mut [0]), Ok(1));
        }
        if reason == StopReason::NewFile {
            let_go(io::stdout().as_fd(), GUARD_HOLD);
            continue;
        }
        // Processes may be stopped only while the recorder drains the ring.
        let is_held_up = control.not_looked().is_some_and(|time| time >= HELD_UP);
        if is_held_up {
            if !suspended {
                control.count_suspension();
            }
            control.set_stopping(false);
            let_go(io::stdout().as_fd(), Duration::ZERO);
        } else if suspended {
            control.set_stopping(true);
        }
        suspended = is_held_up;
    }
}

/// Waits until standard input closes, which means that the recorder has ended, disables the programs, and continues the processes in the
/// map. Standard output is the map of stopped processes, standard error the control map; `kept` is the name of the pinned map.
///
/// # Errors
/// [`UsageError::Helper`] if these are not such maps.
pub fn guard_stopped(reason: StopReason, kept: Option<&str>) -> Result<(), RecordError> {
    // The guard must not get signals of the recorder's terminal.
    let _ = rustix::process::setsid();
    let no_maps = |_: io::Error| {
        RecordError::from(UsageError::Helper {
            verb: STOPPED_VERB,
            expected: HelperInput::Maps,
        })
    };
    let control = io::stderr().as_fd().try_clone_to_owned();
    let control = control.and_then(|map| Control::from_descriptor(map, control::HEAD));
    let control = control.map_err(no_maps)?;
    let time = if watch(reason, &control) {
        GUARD_TIME
    } else {
        GUARD_TIME_KILLED
    };
    control.set_enabled(false);
    // Programs of later parts have their own word for that.
    control.set_stopping(false);
    control.set_holding(false);
    // A program that started earlier may still be stopping its process.
    let begin = Instant::now();
    while begin.elapsed() < time {
        let_go(io::stdout().as_fd(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Some(name) = kept {
        pinned_map::forget(name);
    }
    Ok(())
}
