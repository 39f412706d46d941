//! A ring that programs write to (`BPF_MAP_TYPE_RINGBUF`, Documentation/bpf/ringbuf.rst).
//!
//! Its descriptor is mapped as a page with the reader's position, a page with the writers' position, and the data twice; of the second
//! time only what the longest record needs is mapped: the rest would count as resident memory again. A record is a
//! `u32` length (bit 31: busy, bit 30: discarded), a `u32`, and the bytes; each record is at a multiple of 8.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};

use super::super::sys;

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER: usize = 8;
/// Maximum length of a record with its header, bytes: those of the trace have a length of 16 bits. A multiple of the size of a page.
const MAX_RECORD_BYTES: usize = 64 << 10;

/// The ring.
///
/// Invariants: (1) `consumer` is a page that begins with our position, `producer` a page that begins with the writers',
/// followed by the `len` bytes of data and the first `repeated` of them again, `len` a power of two; (2) between our position
/// and the writers' the kernel changes only records that are busy; (3) only we move our position.
///
/// A record that is busy holds up all records after it. Between reserving and submitting programs call nothing that
/// waits or faults, and a signal, `SIGKILL` included, is seen to only after the program. So a record is busy for as long as its thread
/// runs a few hundred instructions, and, as programs may be preempted, until the scheduler lets it run on: longer for a thread of
/// little weight (`SCHED_IDLE`, a cgroup's quota that kernels enforce within the kernel) on a busy CPU, but not for ever.
#[derive(Debug)]
pub struct Ring {
    descriptor: OwnedFd,
    consumer: MmapRaw,
    producer: MmapRaw,
    page: usize,
    len: usize,
    repeated: usize,
}

/// Result of a pass over the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// The ring is empty.
    Nothing,
    /// The next record is still being written.
    Busy,
    /// There are more records than the pass may read.
    More,
}

impl Ring {
    /// Creates a ring of `len` bytes: a power of two, at least a page; in the memory of a NUMA node if one is given.
    pub fn new(len: usize, page: usize, node: Option<u32>) -> io::Result<Self> {
        let entries = u32::try_from(len).map_err(io::Error::other)?;
        let descriptor = sys::create_ring(entries, node)?;
        let fd = descriptor.as_raw_fd();
        let repeated = len.min(MAX_RECORD_BYTES);
        let consumer = MmapOptions::new().len(page).map_raw(fd)?;
        let producer = MmapOptions::new()
            .offset(page as u64)
            .len(page + len + repeated)
            .map_raw_read_only(fd)?;
        Ok(Self {
            descriptor,
            consumer,
            producer,
            page,
            len,
            repeated,
        })
    }

    /// Its size, bytes.
    pub const fn capacity(&self) -> usize {
        self.len
    }

    /// Number of bytes in use.
    pub fn filled(&self) -> u64 {
        let consumed = self.consumer().load(Ordering::Relaxed);
        self.written().saturating_sub(consumed)
    }

    /// The writers' position: bytes since the ring was created.
    pub fn written(&self) -> u64 {
        self.producer().load(Ordering::SeqCst)
    }

    /// Passes complete records to `take`, in order, up to a position of the writers, and frees their space.
    pub fn drain(&mut self, end: u64, mut take: impl FnMut(&[u8])) -> Left {
        // Writers read the position at each reservation, so it is moved in steps.
        let step = self.len as u64 / 8;
        let mut given = self.consumer().load(Ordering::Relaxed);
        let mut position = given;
        let mut written = position;
        loop {
            if position == written {
                self.consumer().store(position, Ordering::SeqCst);
                written = self.producer().load(Ordering::SeqCst);
                if position == written {
                    return Left::Nothing;
                }
            }
            let start = position as usize & (self.len - 1);
            if position >= end {
                self.consumer().store(position, Ordering::Release);
                return Left::More;
            }
            let mut length = self.length(start).load(Ordering::Acquire);
            if length & BUSY != 0 {
                // Who completes it wakes the reader only if our position is that of the record.
                self.consumer().store(position, Ordering::SeqCst);
                given = position;
                length = self.length(start).load(Ordering::SeqCst);
                if length & BUSY != 0 {
                    return Left::Busy;
                }
            }
            let bytes = ((length & !DISCARDED) as usize).min(self.repeated - HEADER);
            if length & DISCARDED == 0 {
                take(self.bytes(start + HEADER, bytes));
            }
            position += (bytes + HEADER).next_multiple_of(8) as u64;
            if position - given >= step {
                self.consumer().store(position, Ordering::Release);
                given = position;
            }
        }
    }

    /// As [`drain`](Self::drain), of all records that have arrived. If the first of them is still being written, waits for a moment: poll(2) reports it
    /// as readable, and its writer may need the CPU of this thread, whose priority may be higher.
    pub fn drain_arrived(&mut self, mut take: impl FnMut(&[u8])) {
        const MOMENT: Duration = Duration::from_micros(50);
        let mut is_first = true;
        let left = self.drain(self.written(), |record| {
            is_first = false;
            take(record);
        });
        if left == Left::Busy && is_first {
            std::thread::sleep(MOMENT);
        }
    }

    /// Skips the record at the reader's position if it is still being written. Returns whether it was. Only programs that have a
    /// reservation may still write to the ring, because the space of the record is freed.
    pub fn pass_over_busy(&mut self) -> bool {
        let position = self.consumer().load(Ordering::Relaxed);
        if position == self.producer().load(Ordering::SeqCst) {
            return false;
        }
        let start = position as usize & (self.len - 1);
        let length = self.length(start).load(Ordering::Acquire);
        if length & BUSY == 0 {
            return false;
        }
        let bytes = ((length & !(BUSY | DISCARDED)) as usize).min(self.repeated - HEADER);
        let after = position + (bytes + HEADER).next_multiple_of(8) as u64;
        self.consumer().store(after, Ordering::Release);
        true
    }

    fn consumer(&self) -> &AtomicU64 {
        let at = self.consumer.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: invariant 1: an aligned u64 that is mapped as long as `self`.
        unsafe { &*at }
    }

    fn producer(&self) -> &AtomicU64 {
        let at = self.producer.as_ptr().cast::<AtomicU64>();
        // SAFETY: invariant 1, and it is only loaded.
        unsafe { &*at }
    }

    /// The length word of the record at an offset of the data, which is a multiple of 8 below `len`.
    fn length(&self, start: usize) -> &AtomicU32 {
        let at = self
            .producer
            .as_ptr()
            .wrapping_add(self.page + start)
            .cast::<AtomicU32>();
        // SAFETY: invariant 1: inside the mapping and aligned; it is only loaded.
        unsafe { &*at }
    }

    /// Bytes of a record that is complete. Thanks to the data's second mapping they never wrap.
    fn bytes(&self, start: usize, len: usize) -> &[u8] {
        let at = self.producer.as_ptr().wrapping_add(self.page + start);
        // SAFETY: invariants 1 and 2: `start` is at most `self.len` and `len` less than `repeated`, so that the record ends inside
        // the second mapping; it does not change before our position passes it, which happens only when this borrow is over.
        unsafe { std::slice::from_raw_parts(at, len) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
