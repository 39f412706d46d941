//! The most memory that was ever allocated at once, so that a test can show that no claim in a file is believed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counting.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated now.
pub fn now() -> usize {
    NOW.load(Ordering::Relaxed)
}

/// Most bytes allocated at once since the last [`reset`].
pub fn most() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Forgets the most.
pub fn reset() {
    PEAK.store(now(), Ordering::Relaxed);
}

// SAFETY: every call goes to `System` unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `System` by `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}
