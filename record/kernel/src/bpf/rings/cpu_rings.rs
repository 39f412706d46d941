//! The rings that programs write to: one for each CPU, because reserving takes the ring's lock.
//!
//! Programs find theirs in an array of maps, by the number of the CPU. A CPU that comes on line later shares the ring of another.
//!
//! Each CPU that is on line has a ring in the memory of its NUMA node. A pass notes the ends of all rings before it
//! drains the first: what a ring gets meanwhile is later than what any had. A record that is still being written holds
//! up its own ring only.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::epoll;

use super::super::sys;
use super::ringbuf::{Left, Ring};
use crate::host::cpus;

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
