//! Memory that this process has freed, and that the allocator keeps.

use std::time::{Duration, Instant};

/// How often free memory is given back. After a burst of hits much of it is free.
const INTERVAL: Duration = Duration::from_secs(30);

/// Gives free memory back to the system from time to time.
#[derive(Debug)]
pub struct FreeMemory {
    next: Instant,
}

impl FreeMemory {
    /// Begins an interval.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next: Instant::now() + INTERVAL,
        }
    }

    /// Gives it back if the interval is over. That takes some milliseconds for 100 MB.
    pub fn give_back_if_due(&mut self) {
        if Instant::now() >= self.next {
            give_back();
            self.next = Instant::now() + INTERVAL;
        }
    }
}

impl Default for FreeMemory {
    fn default() -> Self {
        Self::new()
    }
}

/// Has threads share two heaps: glibc gives each a heap of its own, where what a thread has freed cannot be used by others. A recorder that attached to
/// 7,400 probes kept 36 MB so. To be called before threads are started.
#[cfg(target_env = "gnu")]
pub fn share_heaps() {
    // SAFETY: mallopt(3) takes two numbers.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 2) };
}

/// Nothing: other allocators have no such heaps.
#[cfg(not(target_env = "gnu"))]
pub const fn share_heaps() {}

/// Gives free memory back, also that between pieces in use, which the allocator keeps otherwise.
#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: malloc_trim(3) may be called at any time, by any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Nothing: other allocators give it back by themselves.
#[cfg(not(target_env = "gnu"))]
const fn give_back() {}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    /// Size of this process's memory that is of no file, KiB.
    fn anonymous() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let size = line.and_then(|line| line.trim().strip_suffix(" kB"));
        size.unwrap().trim().parse().unwrap()
    }

    #[test]
    fn what_was_freed_between_pieces_in_use_is_given_back() {
        const PIECES: usize = 2000;
        const KIB: u64 = 40;
        const BYTES: usize = (KIB as usize) << 10;
        let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; BYTES]).collect();
        let before = anonymous();
        let mut number = 0;
        pieces.retain(|_| {
            number += 1;
            number % 100 == 0
        });
        give_back();
        let freed = before.saturating_sub(anonymous());
        // Other tests run beside this one.
        assert!(freed > PIECES as u64 * KIB / 2, "{freed} KiB of {before}");
        assert_eq!(pieces.len(), PIECES / 100);
    }
}
