//! Semaphores of a file that one process maps more than once: a library that `dlmopen(3)` or `LD_AUDIT` load again.
//!
//! The kernel knows a semaphore by its file offset. For each breakpoint, in whatever copy, it increments the semaphore in the writable mapping
//! with the lowest address at that moment, and decrements it in the one that is then the lowest (kernel/events/uprobes.c,
//! `find_ref_ctr_vma`). So one copy has the hits of all, the others have 0, and when a copy is loaded below the others, the kernel would
//! decrement a semaphore that is 0, and leave the breakpoint.
//!
//! Here the state is made what the kernel would find right: the lowest copy has as many as there are breakpoints, and each other one has 1, which
//! is incremented by hand, noted below `/run/usdtrec` before, and decremented at the end. What a killed recorder leaves is in the notes.
//! Between loading and the first look hits of the new copy are missing. A child inherits the increments of its parent, and is looked at
//! itself.

use std::collections::{HashMap, HashSet};
use std::io;

use usdtrec_buildid_cache::MappedInode;

use super::file_memory::LastMemory;
use super::stored_increments::{Note, StoredIncrements, start_of};
use crate::limits::MAX_BASES;

/// A semaphore of a file that a process may map more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedSemaphore {
    /// Index of the file.
    pub file: usize,
    /// File offset of the semaphore.
    pub offset: u64,
    /// How often the process maps the code.
    pub copies: usize,
    /// Number of breakpoints for which the kernel has incremented it, in all copies.
    pub breakpoints: u16,
    /// Its addresses, one in each copy.
    addresses: Vec<u64>,
}

impl CopiedSemaphore {
    /// Adds the address in a copy, unless there are too many: no increment is made then.
    pub fn add(&mut self, address: u64) {
        if self.addresses.len() < MAX_BASES && !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }
}

/// The semaphores that are incremented by hand. Dropping it decrements them; what cannot be decremented stays noted.
#[derive(Debug)]
pub struct Copies {
    stored: StoredIncrements,
    /// By process.
    raised: HashMap<i32, HashSet<Note>>,
    memory: LastMemory,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            stored: StoredIncrements::of_copies(),
            raised: HashMap::new(),
            memory: LastMemory::default(),
        }
    }
}

impl Copies {
    /// Increments a semaphore in the copies that lack it. Returns how many were incremented.
    ///
    /// # Errors
    /// `Interrupted` if a copy is not loaded to its end; those of noting it and of writing the memory of the process.
    pub fn raise(
        &mut self,
        pid: i32,
        file: MappedInode,
        semaphore: &CopiedSemaphore,
    ) -> io::Result<usize> {
        let process = u32::try_from(pid).map_err(io::Error::other)?;
        let start = start_of(process)?;
        let memory = self.memory.of_file(process, start, file)?;
        let offset = semaphore.offset;
        let mut addresses = semaphore.addresses.clone();
        addresses.retain(|address| memory.has(offset, *address));
        addresses.sort_unstable();
        let Some((lowest, others)) = addresses.split_first() else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        if addresses.len() < semaphore.copies {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let note = |address: u64| Note {
            pid: process,
            start,
            file,
            offset,
            address,
        };
        let raised = self.raised.entry(pid).or_default();
        // It is counted by the kernel from now on.
        if raised.remove(&note(*lowest)) {
            self.stored.remove(&[note(*lowest)]);
        }
        let missing = semaphore
            .breakpoints
            .saturating_sub(memory.semaphore(*lowest)?);
        memory.add(*lowest, missing.into())?;
        let mut number = 0;
        for address in others {
            let new = note(*address);
            let value = memory.semaphore(*address)?;
            if value == 1 && raised.contains(&new) {
                continue;
            }
            self.stored.add(&[new])?;
            raised.insert(new);
            memory.add(*address, 1 - i32::from(value))?;
            number += usize::from(value == 0);
        }
        Ok(number)
    }

    /// Whether semaphores of a process are incremented by hand.
    pub fn has(&self, pid: i32) -> bool {
        self.raised.get(&pid).is_some_and(|notes| !notes.is_empty())
    }

    /// Forgets a process that has ended, or begins another program.
    pub fn forget(&mut self, pid: i32) {
        let notes = self.raised.remove(&pid).unwrap_or_default();
        let notes: Vec<Note> = notes.into_iter().collect();
        self.stored.remove(&notes);
    }

    /// Decrements all of them. Returns the living processes in which that failed, each once, with the last error.
    pub fn lower(&mut self) -> Vec<(i32, io::Error)> {
        let mut failed = Vec::new();
        for (pid, notes) in self.raised.drain() {
            let mut last = None;
            for note in notes {
                match note.lower(&mut self.memory) {
                    Err(error) if note.may_count(&mut self.memory) => last = Some(error),
                    // One that ends now has no semaphores any more.
                    Ok(()) | Err(_) => self.stored.remove(&[note]),
                }
            }
            failed.extend(last.map(|error| (pid, error)));
        }
        failed
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.lower();
    }
}
