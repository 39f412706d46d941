//! The rings of all CPUs, each owned by an event that counts nothing.
//!
//! An owner watches all threads: one that watched the first traced thread would hang up with it and wake nobody any more.
//!
//! Rings of CPUs that come on line later have records with ids that the trace does not know, as these stand before its data. They get the
//! ids of the events that do the same on a CPU of the beginning: the record itself names its CPU.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_format::perf::{RecordType, Records};

use super::event::{Event, KernelAttr, Mode};
use super::refusal::refusal;
use super::ring::Ring;
use crate::RecordError;

/// Largest sum of all rings where the size was not asked for.
const MAX_DEFAULT: usize = 256 << 20;

/// How often CPUs may come on line: one that goes and comes all the time must not take our memory.
const MOST_LATER: usize = 64;

/// Bytes of a record's header, and of an id.
const HEADER: usize = 8;
const ID: usize = 8;

/// One ring for each CPU, all of one size.
#[derive(Debug)]
pub(crate) struct Rings {
    rings: Vec<Ring>,
    /// Those of CPUs that came later.
    later: Vec<Ring>,
    /// The ids that the trace knows for those of events on these CPUs.
    known_as: HashMap<u64, u64>,
    renamed: Vec<u8>,
    bytes: usize,
    mode: Mode,
}

impl Rings {
    /// Maps rings of `asked` bytes, or of what is sensible and allowed.
    pub(crate) fn map(mode: Mode, cpus: &[u32], asked: Option<usize>) -> Result<Self, RecordError> {
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
                Err(Failure::Map(source)) => return Err(RecordError::Ring { bytes, source }),
            }
        }
    }

    /// Bytes of each ring.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The descriptors to which events of each CPU of the beginning are redirected, in the order of these.
    pub(crate) fn owners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner().as_fd())
    }

    /// The descriptors that become readable when a ring has much.
    pub(crate) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let later = self.later.iter().map(|ring| ring.owner().as_fd());
        self.owners().chain(later)
    }

    /// Maps a ring for a CPU that came later.
    pub(crate) fn add(&mut self, cpu: u32) -> Result<(), RecordError> {
        if self.later.len() >= MOST_LATER {
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

    /// Sends the records of an event on the CPU that came last to its ring, under the id of an event of the beginning.
    pub(crate) fn redirect_as(&mut self, event: &mut Event, known: u64) -> io::Result<()> {
        let ring = self.later.last().ok_or(io::ErrorKind::NotFound)?;
        event.redirect(ring.owner().as_fd())?;
        self.known_as.insert(event.id, known);
        event.id = known;
        Ok(())
    }

    /// Sample ids of the owners.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.rings.iter().map(|ring| ring.owner().id)
    }

    /// Hands over all complete records of all rings.
    pub(crate) fn drain(&mut self, mut sink: impl FnMut(&[u8])) {
        for ring in &mut self.rings {
            ring.drain(&mut sink);
        }
        let (known_as, renamed) = (&self.known_as, &mut self.renamed);
        for ring in &mut self.later {
            ring.drain(|records| {
                renamed.clear();
                renamed.extend_from_slice(records);
                rename(renamed, known_as);
                sink(renamed);
            });
        }
    }
}

/// Gives records the ids that the trace knows.
fn rename(records: &mut [u8], known_as: &HashMap<u64, u64>) {
    let places = Records::new(records).map(|record| {
        let (first, len) = (record.offset + HEADER, record.body.len());
        // A sample begins with its id, each other record ends with one.
        match record.kind {
            RecordType::SAMPLE => [Some(first), None],
            // It tells of an event besides.
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
    let owner = KernelAttr::ring_owner(mode, (bytes / 4) as u32);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of this kind whose body is these words.
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
                // Which event, how many, who tells it.
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
        // What is no whole record is left alone.
        for cut in 0..renamed.len() {
            rename(&mut renamed[..cut], &known_as);
        }
    }
}
