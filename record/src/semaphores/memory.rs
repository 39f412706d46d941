//! The memory of a process, for semaphores and breakpoints.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of a process as it was when this was opened: after an `execve(2)` it is gone.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
}

impl Memory {
    /// Opens it.
    ///
    /// # Errors
    /// The error of opening `/proc/PID/mem`.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file })
    }

    /// The semaphore at an address.
    pub(super) fn semaphore(&self, address: u64) -> io::Result<u16> {
        let mut bytes = [0; 2];
        self.file.read_exact_at(&mut bytes, address)?;
        Ok(u16::from_ne_bytes(bytes))
    }

    /// Adds to the semaphore at an address. It stays between 0 and the largest value that the kernel allows.
    pub(super) fn add(&self, address: u64, change: i32) -> io::Result<()> {
        /// The kernel refuses to exceed it (`__update_ref_ctr`, a signed 16-bit number).
        const LARGEST: i32 = i16::MAX as i32;
        let value = i32::from(self.semaphore(address)?);
        let value = value.saturating_add(change).clamp(0, LARGEST) as u16;
        self.file.write_all_at(&value.to_ne_bytes(), address)
    }

    /// How many of these addresses have a byte other than 0: the places of semaphores, where the file has 0.
    pub(super) fn breakpoints(&self, addresses: &[u64]) -> usize {
        let is_changed = |address: &&u64| {
            let mut byte = [0; 4];
            self.file.read_exact_at(&mut byte, **address).is_ok() && byte[0] != 0
        };
        addresses.iter().filter(is_changed).count()
    }
}
