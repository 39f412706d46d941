//! The rings that programs write to: one for each CPU, because reserving takes the ring's lock.
//!
//! Programs find theirs in an array of maps, by the number of the CPU. A CPU that comes on line later shares the ring of another.
//!
//! Each CPU that is on line has a ring in the memory of its NUMA node. A pass notes the ends of all rings before it
//! drains the first: what a ring gets meanwhile is later than what any had. A record that is still being written holds
//! up its own ring only.
//!
//! A ring is a `BPF_MAP_TYPE_RINGBUF` (Documentation/bpf/ringbuf.rst).
//!
//! Its descriptor is mapped as a page with the reader's position, a page with the writers' position, and the data twice; of the second
//! time only what the longest record needs is mapped: the rest would count as resident memory again. A record is a
//! `u32` length (bit 31: busy, bit 30: discarded), a `u32`, and the bytes; each record is at a multiple of 8.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};

use memmap2::{MmapOptions, MmapRaw};
use rustix::event::epoll;

use super::sys;
use crate::host::cpus;

/// Default size of each ring, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const DEFAULT_RING: usize = 8 << 20;
const MIN_DEFAULT_RING: usize = 1 << 20;
const DEFAULT_RINGS: usize = 64 << 20;
/// The same with copies of stacks, as far as memory allows: the first copies of a site are large, and a burst of hits is to fit.
const STACK_RING: usize = 64 << 20;
const STACK_RINGS: usize = 256 << 20;
/// The part of the host's memory that all such rings take at most.
const MEMORY_PART: u64 = 32;
/// Maximum size of all rings, bytes.
const MAX_RINGS: usize = 1 << 30;

/// Size of each ring, bytes, a power of two. `has_copies`: whether stacks are copied.
pub fn ring_bytes(asked: Option<usize>, cpus: usize, has_copies: bool) -> usize {
    let cpus = cpus.max(1);
    let bytes = asked.unwrap_or_else(|| {
        let usual = (DEFAULT_RINGS / cpus).clamp(MIN_DEFAULT_RING, DEFAULT_RING);
        match has_copies {
            true => (rings_of_stacks() / cpus).clamp(usual, STACK_RING),
            false => usual,
        }
    });
    let bytes = bytes.min(MAX_RINGS / cpus).max(rustix::param::page_size());
    1 << bytes.ilog2()
}

/// Size of all rings with copies of stacks, bytes.
fn rings_of_stacks() -> usize {
    let host = rustix::system::sysinfo();
    let memory = u64::from(host.mem_unit) * host.totalram;
    usize::try_from(memory / MEMORY_PART).map_or(STACK_RINGS, |part| part.min(STACK_RINGS))
}

/// Minimum size of a ring, bytes, if the kernel has no memory for larger ones.
const MIN_RING_BYTES: usize = 64 << 10;
/// In about this time the kernel frees the memory of rings that were closed, which it does later (`bpf_map_free_deferred`).
const FREEING: Duration = Duration::from_millis(50);

/// A ring for each CPU.
#[derive(Debug)]
pub struct CpuRings {
    /// From the number of a CPU to its ring, for programs.
    array: OwnedFd,
    rings: Vec<Ring>,
    /// Becomes readable when one of the rings has something.
    epoll: OwnedFd,
    /// Puts the rings into the array.
    filling: Option<JoinHandle<io::Result<()>>>,
}

/// Which rings are created, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// The CPUs that get a ring of their own.
    pub cpus: &'a [u32],
    /// Bytes of a ring: a power of two, at least a page.
    pub bytes: usize,
}

impl CpuRings {
    /// Creates the rings: smaller ones than wanted where the kernel has no memory for these (the limit of a memory cgroup).
    pub fn new(sizes: Sizes<'_>) -> io::Result<Self> {
        let mut bytes = sizes.bytes;
        while bytes / 2 >= MIN_RING_BYTES {
            match Self::with_sizes(Sizes { bytes, ..sizes }) {
                Err(error) if is_memory(&error) => {
                    std::thread::sleep(FREEING);
                    bytes /= 2;
                }
                Ok(_) if bytes < sizes.bytes => {
                    // Whoever takes all memory of the group is killed with the next page.
                    bytes /= 2;
                    break;
                }
                result => return result,
            }
        }
        Self::of_freed(Sizes { bytes, ..sizes })
    }

    /// Creates rings after larger ones, whose memory may not be free yet.
    fn of_freed(sizes: Sizes<'_>) -> io::Result<Self> {
        for _ in 0..20 {
            match Self::with_sizes(sizes) {
                Err(error) if is_memory(&error) => std::thread::sleep(FREEING),
                result => return result,
            }
        }
        Self::with_sizes(sizes)
    }

    fn with_sizes(Sizes { cpus, bytes }: Sizes<'_>) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let rings = cpus.iter().map(|cpu| Ring::new(bytes, page, node_of(*cpu)));
        let rings: Vec<Ring> = rings.collect::<io::Result<_>>()?;
        let first = rings.first().ok_or(io::ErrorKind::InvalidInput)?;
        // Without sysfs, at least those that are recorded.
        let possible = cpus::possible().unwrap_or_default();
        let last = possible.last().max(cpus.last());
        let possible = last.map_or(1, |last| last + 1);
        let array = sys::create_array_of_maps(first.as_fd(), possible)?;
        let of_cpu = (0..possible).map(|cpu| {
            let own = cpus.binary_search(&cpu);
            own.unwrap_or(cpu as usize % rings.len())
        });
        let filling = fill(&array, &rings, of_cpu.collect())?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, ring) in rings.iter().enumerate() {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, ring, data, epoll::EventFlags::IN)?;
        }
        Ok(Self {
            array,
            rings,
            epoll,
            filling: Some(filling),
        })
    }

    /// Waits until programs find the rings.
    pub fn wait_until_filled(&mut self) -> io::Result<()> {
        self.filling.take().map_or(Ok(()), |filling| {
            let filled = filling.join();
            filled.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Size of each ring, bytes.
    pub fn bytes(&self) -> usize {
        self.rings.first().map_or(0, Ring::capacity)
    }

    /// The array of maps.
    pub fn array(&self) -> BorrowedFd<'_> {
        self.array.as_fd()
    }

    /// The largest share of a ring that is taken, 1/256ths.
    pub fn fullest(&self) -> u64 {
        let shares = self
            .rings
            .iter()
            .map(|ring| ring.filled() * 256 / ring.capacity() as u64);
        shares.max().unwrap_or(0)
    }

    /// Gives `take` each complete record that is there now, ring by ring; what is written meanwhile is left, so that a pass ends.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> Left {
        // All ends first: what a ring gets while another is drained is later than what that other had.
        let ends: Vec<u64> = self.rings.iter().map(Ring::written).collect();
        let left = self.rings.iter_mut().zip(ends);
        let left = left.map(|(ring, end)| ring.drain(end, &mut take));
        left.max().unwrap_or(Left::Nothing)
    }

    /// Skips the records at our positions that are still being written, and returns their number. New
    /// records must not be reserved any more.
    pub fn pass_over_busy(&mut self) -> u64 {
        let rings = self.rings.iter_mut();
        rings.map(|ring| u64::from(ring.pass_over_busy())).sum()
    }
}

impl AsFd for CpuRings {
    /// Becomes readable when one of the rings has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Puts the rings of CPUs, by their indexes, into the array, in a thread: the kernel waits meanwhile until no program sees the array as it was.
fn fill(
    array: &OwnedFd,
    rings: &[Ring],
    of_cpu: Vec<usize>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let array = array.try_clone()?;
    let rings = rings.iter().map(|ring| ring.as_fd().try_clone_to_owned());
    let rings: Vec<OwnedFd> = rings.collect::<io::Result<_>>()?;
    std::thread::Builder::new().spawn(move || {
        let maps = of_cpu.iter().filter_map(|ring| rings.get(*ring));
        sys::put_maps(array.as_fd(), &maps.map(AsFd::as_fd).collect::<Vec<_>>())
    })
}

fn is_memory(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOMEM)
}

/// The NUMA node of a CPU (Documentation/ABI/stable/sysfs-devices-node: a link `nodeN` in the directory of the CPU).
fn node_of(cpu: u32) -> Option<u32> {
    let entries = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.find_map(|name| name.to_str()?.strip_prefix("node")?.parse().ok())
}

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
