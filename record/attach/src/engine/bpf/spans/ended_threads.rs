//! Removes elements of threads that have ended.
//!
//! The id of a thread that has ended is given to another one only when all others have been given, so that none gets it between the look and the removal.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::{Pid, sched_getaffinity};
use usdtrec_kernel::bpf::sys;

use super::entry::{IS_OF_THREAD, OWNED};
use super::span_map::{KEY, SpanMaps};
use crate::engine::numbers::u64_at;

/// Where the level and the thread are in a key.
const LEVEL_AT: Range<usize> = 4..8;
const TASK_AT: usize = 8;
/// Least time between two searches, and the same in relation to how long one takes.
const REST: Duration = Duration::from_secs(1);
const REST_FACTOR: u32 = 100;

impl SpanMaps {
    /// Removes the elements of threads that have ended, if elements of others do not stay because of them.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(in crate::engine::bpf) fn forget_ended_threads(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        if self.room_for_threads() >= 0 || begun < self.next_search {
            return Ok(());
        }
        let mut ended: Vec<[u8; KEY as usize]> = Vec::new();
        sys::read_map(self.spans.as_fd(), self.shape, |key, element| {
            if u64_at(element, OWNED as usize) == Some(IS_OF_THREAD as u64)
                && u64_at(key, TASK_AT).is_some_and(has_ended)
            {
                ended.extend(key.first_chunk());
            }
        })?;
        for key in ended {
            let is_removed = sys::remove(self.spans.as_fd(), key).is_ok();
            let is_lowest = key.get(LEVEL_AT) == Some(&[0; 4]);
            if let Some(room) = self.room().filter(|_| is_removed && is_lowest) {
                room.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.next_search = Instant::now() + REST.max(begun.elapsed() * REST_FACTOR);
        Ok(())
    }
}

fn has_ended(thread: u64) -> bool {
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw);
    // It asks for nothing that needs a permission.
    pid.is_some_and(|pid| sched_getaffinity(Some(pid)).err() == Some(Errno::SRCH))
}
