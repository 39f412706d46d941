//! The rings of all CPUs, each owned by an event that counts nothing.
//!
//! An owner watches all threads: an owner of the first traced thread would report POLLHUP when that thread ends, and not wake the reader
//! any more.
//!
//! Records of CPUs that come on line later have sample ids that are not in the trace, because the ids are written before the data. They get
//! the ids of the corresponding events on one of the first CPUs; each record has its own CPU number.

use std::collections::HashMap;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys::bindings::perf_event_mmap_page;
use usdtrec_format::perf::{RecordType, Records, with_padding};
use usdtrec_kernel::KernelError;

use super::event::refusal;
use super::event::{Event, KernelAttr, Mode};
use crate::error::RecordError;

/// Maximum size of all rings together if no size is given, bytes.
const MAX_DEFAULT: usize = 256 << 20;

/// Maximum number of rings for CPUs that come on line: a CPU that does so repeatedly must not use up memory.
const MAX_LATER_RINGS: usize = 64;

/// Size of a record header, and of a sample id, bytes.
const HEADER: usize = 8;
const ID: usize = 8;

/// Rings of the same size, one for each CPU.
#[derive(Debug)]
pub(in crate::engine) struct Rings {
    rings: Vec<Ring>,
    /// Rings of CPUs that came on line later.
    later: Vec<Ring>,
    /// For sample ids of events on later CPUs: the corresponding ids in the trace.
    known_as: HashMap<u64, u64>,
    renamed: Vec<u8>,
    /// Records with sizes that are multiples of 8.
    padded: Vec<u8>,
    bytes: usize,
    mode: Mode,
}

impl Rings {
    /// Maps rings of `asked` bytes, or of the default size, or of what the limit on locked memory allows.
    pub(in crate::engine) fn map(
        mode: Mode,
        cpus: &[u32],
        asked: Option<usize>,
    ) -> Result<Self, RecordError> {
        let page = rustix::param::page_size();
        let mut bytes = asked.unwrap_or_else(|| default_size(cpus.len(), page));
        loop {
            match map_all(mode, cpus, bytes, page) {
                Ok(rings) => {
                    return Ok(Self {
                        rings,
                        later: Vec::new(),
                        known_as: HashMap::new(),
                        renamed: Vec::new(),
                        padded: Vec::new(),
                        bytes,
                        mode,
                    });
                }
                Err(Failure::Open(error)) => return Err(refusal(error)),
                Err(Failure::Map(error))
                    if asked.is_none() && bytes > page && is_too_large(&error) =>
                {
                    bytes /= 2
                }
                Err(Failure::Map(source)) => return Err(KernelError::Ring { bytes, source }.into()),
            }
        }
    }

    /// Size of each ring, bytes.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The descriptors to which events are redirected, one for each of the first CPUs, in their order.
    pub(in crate::engine) fn owners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner().as_fd())
    }

    /// The descriptors that become readable when a ring has many records.
    pub(in crate::engine) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let later = self.later.iter().map(|ring| ring.owner().as_fd());
        self.owners().chain(later)
    }

    /// Maps a ring for a CPU that came on line.
    pub(in crate::engine) fn add(&mut self, cpu: u32) -> Result<(), RecordError> {
        if self.later.len() >= MAX_LATER_RINGS {
            return Err(refusal(io::Error::from(io::ErrorKind::QuotaExceeded)));
        }
        let page = rustix::param::page_size();
        let rings = map_all(self.mode, &[cpu], self.bytes, page);
        let rings = rings.map_err(|failure| match failure {
            Failure::Open(error) | Failure::Map(error) => refusal(error),
        })?;
        let known = self.ids().next();
        for ring in rings {
            self.known_as
                .extend(known.map(|known| (ring.owner().id, known)));
            self.later.push(ring);
        }
        Ok(())
    }

    /// Redirects an event on the CPU that came last to its ring. Its records get the sample id of an event on one of the first CPUs.
    pub(in crate::engine) fn redirect_as(
        &mut self,
        event: &mut Event,
        known: u64,
    ) -> io::Result<()> {
        let ring = self.later.last().ok_or(io::ErrorKind::NotFound)?;
        event.redirect(ring.owner().as_fd())?;
        self.known_as.insert(event.id, known);
        event.id = known;
        Ok(())
    }

    /// Sample ids of the owners.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.rings.iter().map(|ring| ring.owner().id)
    }

    /// Passes all complete records of all rings to `sink`.
    pub(in crate::engine) fn drain(&mut self, mut sink: impl FnMut(&[u8])) {
        let padded = &mut self.padded;
        for ring in &mut self.rings {
            ring.drain(|records| sink(with_padding(records, padded)));
        }
        let (known_as, renamed) = (&self.known_as, &mut self.renamed);
        for ring in &mut self.later {
            ring.drain(|records| {
                renamed.clear();
                renamed.extend_from_slice(with_padding(records, padded));
                rename(renamed, known_as);
                sink(renamed);
            });
        }
    }
}

/// Replaces the sample ids of records by those in the trace.
fn rename(records: &mut [u8], known_as: &HashMap<u64, u64>) {
    let places = Records::new(records).map(|record| {
        let (first, len) = (record.offset + HEADER, record.body.len());
        // A sample begins with its id; other records end with one.
        match record.kind {
            RecordType::SAMPLE => [Some(first), None],
            // PERF_RECORD_LOST also has the id of an event in its body.
            RecordType::LOST => [Some(first), Some(first + len.saturating_sub(ID))],
            _ => [None, Some(first + len.saturating_sub(ID))],
        }
    });
    let places: Vec<usize> = places.flatten().flatten().collect();
    for place in places {
        let id = records
            .get_mut(place..)
            .and_then(<[u8]>::first_chunk_mut::<ID>);
        if let Some(id) = id
            && let Some(known) = known_as.get(&u64::from_ne_bytes(*id))
        {
            *id = known.to_ne_bytes();
        }
    }
}

enum Failure {
    Open(io::Error),
    Map(io::Error),
}

fn map_all(mode: Mode, cpus: &[u32], bytes: usize, page: usize) -> Result<Vec<Ring>, Failure> {
    let wakeup = if mode.is_prompt { 1 } else { bytes / 4 };
    let owner = KernelAttr::ring_owner(mode, wakeup as u32);
    let map = |cpu: &u32| {
        let event = Event::open(&owner, -1, *cpu).map_err(Failure::Open)?;
        Ring::map(event, bytes, page).map_err(Failure::Map)
    };
    cpus.iter().map(map).collect()
}

/// 4 MiB, or less on machines with many CPUs.
fn default_size(cpus: usize, page: usize) -> usize {
    let mut bytes = 4 << 20;
    while bytes * cpus > MAX_DEFAULT && bytes > 16 * page {
        bytes /= 2;
    }
    bytes
}

fn is_too_large(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

/// The ring of one CPU, with the event that owns it.
///
/// Invariants: (1) `map` is one page of `perf_event_mmap_page` followed by `len` bytes of data, `len` a power of two;
/// (2) the kernel writes no byte of `[tail, head)`, where only we move `tail`; (3) only one thread reads.
#[derive(Debug)]
pub(super) struct Ring {
    owner: Event,
    map: MmapRaw,
    page: usize,
    len: usize,
    /// Records that wrap around the end of the ring, in one piece.
    joined: Vec<u8>,
}

impl Ring {
    /// Maps a ring of `len` bytes (a power of two, at least a page) for the event's CPU.
    pub(super) fn map(owner: Event, len: usize, page: usize) -> io::Result<Self> {
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
    pub(super) fn owner(&self) -> &Event {
        &self.owner
    }

    /// Passes all complete records to `sink`, in order, and frees their space in the ring.
    pub(super) fn drain(&mut self, sink: impl FnOnce(&[u8])) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this type with these words as its body.
    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(0_u16.to_ne_bytes());
        record.extend(((HEADER + 8 * words.len()) as u16).to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }

    #[test]
    fn ids_of_later_events_become_known_ones() {
        let known_as = HashMap::from([(70, 7), (80, 8)]);
        let (sample, lost, comm) = (9, 2, 3);
        let records = |ids: [u64; 6]| {
            [
                record(sample, &[ids[0], 70, 80]),
                // The event, the number of lost records, and the sample id.
                record(lost, &[ids[1], 70, 80, ids[2]]),
                record(comm, &[70, 80, ids[3]]),
                record(sample, &[ids[4], 80, 70]),
                record(comm, &[80, ids[5]]),
            ]
            .concat()
        };
        let mut renamed = records([70, 70, 80, 80, 71, 70]);
        rename(&mut renamed, &known_as);
        assert_eq!(renamed, records([7, 7, 8, 8, 71, 7]));
        // Bytes that are not a whole record are unchanged.
        for cut in 0..renamed.len() {
            rename(&mut renamed[..cut], &known_as);
        }
    }
}
