//! The rings of all CPUs, each owned by an event that counts nothing.
//!
//! An owner watches all threads: one that watched the first traced thread would hang up with it and wake nobody any more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::event::{Event, KernelAttr, Mode};
use super::refusal::refusal;
use super::ring::Ring;
use crate::RecordError;

/// Largest sum of all rings where the size was not asked for.
const MAX_DEFAULT: usize = 256 << 20;

/// One ring for each CPU, all of one size.
#[derive(Debug)]
pub(crate) struct Rings {
    rings: Vec<Ring>,
    bytes: usize,
}

impl Rings {
    /// Maps rings of `asked` bytes, or of what is sensible and allowed.
    pub(crate) fn map(mode: Mode, cpus: &[u32], asked: Option<usize>) -> Result<Self, RecordError> {
        let page = rustix::param::page_size();
        let mut bytes = asked.unwrap_or_else(|| default_size(cpus.len(), page));
        loop {
            match map_all(mode, cpus, bytes, page) {
                Ok(rings) => return Ok(Self { rings, bytes }),
                Err(Failure::Open(error)) => return Err(refusal(error)),
                Err(Failure::Map(error))
                    if asked.is_none() && bytes > page && is_too_large(&error) =>
                {
                    bytes /= 2
                }
                Err(Failure::Map(source)) => {
                    let what = format!(
                        "cannot map a ring of {bytes} bytes for each of the CPUs; a smaller -m needs less locked memory \
                         (kernel.perf_event_mlock_kb, ulimit -l, or CAP_IPC_LOCK)"
                    );
                    return Err(RecordError::Kernel { what, source });
                }
            }
        }
    }

    /// Bytes of each ring.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The descriptors to which events of each CPU are redirected; they become readable when a ring has much.
    pub(crate) fn owners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner().as_fd())
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
