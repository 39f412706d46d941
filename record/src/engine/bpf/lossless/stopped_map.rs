//! The map of stopped processes: the time of the stop, by process id.
//!
//! Whoever continues a process removes it first: it may be stopped again at once, and is in the map again then. A process that is killed
//! after it has removed another one cannot continue it any more. So the key with [`CONTINUING`] is in the map from before until after
//! both, and whoever looks next continues the process.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use usdtrec_kernel::bpf::sys::{self, MapKind, MapShape};
use usdtrec_kernel::clocks::trace_clock;
use usdtrec_kernel::host::process::{Process, Stat};

/// Maximum number of processes that are stopped at a time.
pub(in crate::engine::bpf) const MAX_STOPPED: u32 = 65_536;

/// Bit of the key of a process that is being continued. Process ids are below 2^22 (`PID_MAX_LIMIT`).
const CONTINUING: u32 = 1 << 31;

/// The signals that are noted if they are sent to a process meanwhile, in the order of their bits. `SIGCONT` removes them.
const NOTED: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
/// The bit of a value for the first of them. A time in ns has fewer bits for 73 years.
pub(in crate::engine::bpf) const FIRST_NOTED: u32 = 61;

/// A process that was stopped.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct StopNote {
    pub(in crate::engine::bpf) pid: u32,
    /// When: ns of `CLOCK_BOOTTIME`.
    pub(in crate::engine::bpf) time: u64,
    /// Bits of [`NOTED`].
    later: u64,
}

impl StopNote {
    fn read(map: BorrowedFd<'_>, key: u32) -> io::Result<Self> {
        Ok(Self::of_element(key, sys::time_of(map, key)?))
    }

    const fn of_element(key: u32, value: u64) -> Self {
        Self {
            pid: key & !CONTINUING,
            time: value & ((1 << FIRST_NOTED) - 1),
            later: value >> FIRST_NOTED,
        }
    }

    /// Whether it may be of this process: one that was started later has the same id by chance.
    pub(in crate::engine::bpf) fn may_be_of(self, stat: &Stat) -> bool {
        trace_clock::boot_of_proc(stat.started()) <= self.time
    }

    /// The noted signals that were sent to it meanwhile.
    fn later(self) -> impl Iterator<Item = Signal> {
        let bits = (0..).zip(NOTED);
        bits.filter_map(move |(bit, signal)| (self.later >> bit & 1 != 0).then_some(signal))
    }
}

/// Creates an empty map.
pub(in crate::engine::bpf) fn create() -> io::Result<OwnedFd> {
    let shape = MapShape {
        key_size: 4,
        value_size: 8,
        entries: MAX_STOPPED,
    };
    sys::create_map(MapKind::Hash, shape)
}

/// The processes that are in the map now; one that is stopped again while it is continued is there twice.
pub(in crate::engine::bpf) fn stopped(map: BorrowedFd<'_>) -> Vec<StopNote> {
    let keys = sys::keys(map, MAX_STOPPED).into_iter();
    // Those that were removed meanwhile have no time.
    keys.filter_map(|key| StopNote::read(map, key).ok())
        .collect()
}

/// What the map has of a process; `None` if it is not there.
pub(in crate::engine::bpf) fn note_of(map: BorrowedFd<'_>, pid: u32) -> Option<StopNote> {
    StopNote::read(map, pid).ok()
}

/// Removes a process, and continues it by `send`.
pub(in crate::engine::bpf) fn release(map: BorrowedFd<'_>, stop: StopNote, send: impl FnOnce()) {
    // If the map is full, there is no room for the second key.
    let _ = sys::insert_time(map, stop.pid | CONTINUING, stop.time);
    // If that fails, another process has removed it.
    let _ = sys::remove(map, stop.pid);
    send();
    let _ = sys::remove(map, stop.pid | CONTINUING);
}

/// Removes a process, and continues it, if it is still the one that was stopped. Then it gets the noted signals that `SIGCONT` has removed.
pub(in crate::engine::bpf) fn continue_process(map: BorrowedFd<'_>, stop: StopNote) {
    let id = stop.pid.try_into().ok().and_then(Pid::from_raw);
    // The handle ensures that the process that is checked gets the signals.
    let process = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
    let is_it = id.is_some_and(|id| {
        let stat = Process::open(id.as_raw_nonzero().get()).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stop.may_be_of(&stat))
    });
    // Signals that were noted since.
    let stop = note_of(map, stop.pid).unwrap_or(stop);
    release(map, stop, || {
        let Some(process) = process.filter(|_| is_it) else {
            return;
        };
        for signal in std::iter::once(Signal::CONT).chain(stop.later()) {
            // The process may have ended.
            let _ = pidfd_send_signal(&process, signal);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_noted_above_the_time() {
        let time = 9_000_000_000_000_000;
        let noted = |value| {
            let stop = StopNote::of_element(7 | CONTINUING, value);
            assert_eq!((stop.pid, stop.time), (7, time));
            stop.later().collect::<Vec<_>>()
        };
        assert_eq!(noted(time), []);
        assert_eq!(noted(time | 1 << 61), [Signal::TSTP]);
        assert_eq!(noted(time | 6 << 61), [Signal::TTIN, Signal::TTOU]);
    }

    #[test]
    fn a_later_process_with_the_same_id_is_another_one() {
        let id = std::process::id();
        let own = Process::open(id.cast_signed()).unwrap().stat().unwrap();
        let stopped_at = |time| StopNote::of_element(id, time);
        assert!(stopped_at(trace_clock::boot()).may_be_of(&own));
        let began = trace_clock::boot_of_proc(own.started());
        assert!(!stopped_at(began - 1).may_be_of(&own));
    }
}
