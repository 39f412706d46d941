//! The map of stopped processes: the time of the stop, by process id.
//!
//! Whoever continues a process removes it first: it may be stopped again at once, and is in the map again then. A process that is killed
//! after it has removed another one cannot continue it any more. So the key with [`CONTINUING`] is in the map from before until after
//! both, and whoever looks next continues the process.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::super::sys::{self, MapKind, MapShape};

/// Maximum number of processes that are stopped at a time.
pub(in crate::engine::bpf) const MAX_STOPPED: u32 = 65_536;

/// Bit of the key of a process that is being continued. Process ids are below 2^22 (`PID_MAX_LIMIT`).
const CONTINUING: u32 = 1 << 31;

/// A process that was stopped.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct StopNote {
    pub(in crate::engine::bpf) pid: u32,
    /// When: ns of `CLOCK_BOOTTIME`.
    pub(in crate::engine::bpf) time: u64,
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
    keys.filter_map(|key| {
        Some(StopNote {
            pid: key & !CONTINUING,
            time: sys::time_of(map, key).ok()?,
        })
    })
    .collect()
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
