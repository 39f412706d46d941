//! A CPU's ring: the buffer that the kernel shares with us (perf_event_open(2), "MMAP layout").

use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::event::Event;

/// The ring of one CPU, with the event that owns it.
///
/// Invariants: (1) `map` is one page of `perf_event_mmap_page` followed by `len` bytes of data, `len` a power of two;
/// (2) the kernel writes no byte of `[tail, head)`, where only we move `tail`; (3) only one thread reads.
#[derive(Debug)]
pub(crate) struct Ring {
    owner: Event,
    map: MmapRaw,
    page: usize,
    len: usize,
    /// Records that wrap around the end of the ring, in one piece.
    joined: Vec<u8>,
}

impl Ring {
    /// Maps a ring of `len` bytes (a power of two, at least a page) for the event's CPU.
    pub(crate) fn map(owner: Event, len: usize, page: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(page + len).map_raw(fd(&owner))?;
        Ok(Self {
            owner,
            map,
            page,
            len,
            joined: Vec::new(),
        })
    }

    /// The event whose ring this is.
    pub(crate) fn owner(&self) -> &Event {
        &self.owner
    }

    /// Passes all complete records to `sink`, in order, and frees their space in the ring.
    pub(crate) fn drain(&mut self, sink: impl FnOnce(&[u8])) {
        let head = self
            .word(offset_of!(perf_event_mmap_page, data_head))
            .load(Ordering::Acquire);
        let tail = self
            .word(offset_of!(perf_event_mmap_page, data_tail))
            .load(Ordering::Relaxed);
        let waiting = (head.wrapping_sub(tail) as usize).min(self.len);
        if waiting == 0 {
            return;
        }
        let start = tail as usize & (self.len - 1);
        let first = waiting.min(self.len - start);
        if first == waiting {
            sink(self.bytes(start, first));
        } else {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            joined.extend_from_slice(self.bytes(start, first));
            joined.extend_from_slice(self.bytes(0, waiting - first));
            sink(&joined);
            self.joined = joined;
        }
        self.word(offset_of!(perf_event_mmap_page, data_tail))
            .store(head, Ordering::Release);
    }

    /// A word of the control page.
    fn word(&self, offset: usize) -> &AtomicU64 {
        let at = self.map.as_ptr().wrapping_add(offset).cast::<AtomicU64>();
        // SAFETY: invariant 1: the control page has an aligned u64 there, which is mapped as long as `self`.
        unsafe { &*at }
    }

    /// Data bytes between tail and head.
    fn bytes(&self, start: usize, len: usize) -> &[u8] {
        let at = self.map.as_ptr().wrapping_add(self.page + start);
        // SAFETY: invariants 1 and 2: the bytes are inside the mapping, and not written before `tail` moves, which `drain` does only after
        // this borrow ends.
        unsafe { std::slice::from_raw_parts(at, len) }
    }
}

/// A descriptor as memmap2 takes it.
fn fd(event: &Event) -> i32 {
    use std::os::fd::AsFd;
    event.as_fd().as_raw_fd()
}
