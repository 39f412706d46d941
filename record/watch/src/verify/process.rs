//! The memory of a process: what it has mapped, and bytes of it.

use std::io;
use std::ops::Range;
use std::time::Instant;

use usdtrec_buildid_cache::served::{Patience, ProcessFile, read_maps};
use usdtrec_buildid_cache::{FileMapping, MemoryMapping};
use usdtrec_kernel::host::process::Page;

use crate::limits::{MAX_LOOK_TIME, check_time};

/// The memory of a process. It stays that of the program that ran when it was opened: after an `execve(2)` nothing can be read.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: u32,
    memory: ProcessFile,
    maps: Vec<u8>,
    pub(super) opened: Instant,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// `NotFound` if it has ended, `PermissionDenied` without `CAP_SYS_PTRACE` or the same user; others of reading `/proc`.
    pub fn open(pid: i32) -> io::Result<Self> {
        Self::of_process(pid, false)
    }

    /// Opens it for writing, too.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_writable(pid: i32) -> io::Result<Self> {
        Self::of_process(pid, true)
    }

    fn of_process(pid: i32, is_writable: bool) -> io::Result<Self> {
        let number = u32::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(Self {
            pid: number,
            memory: ProcessFile::memory(number, is_writable, Patience::Usual)?,
            maps: read_maps(number, Patience::Usual)?,
            opened: Instant::now(),
        })
    }

    /// Checks that a look at the process may go on.
    ///
    /// # Errors
    /// `TimedOut` if it has lasted too long.
    pub(super) fn check_time(&self) -> io::Result<()> {
        check_time(self.opened + MAX_LOOK_TIME)
    }

    /// Whether it has no memory: it is ending, or a kernel thread.
    pub(super) fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// The files that it maps.
    pub fn files(&self) -> impl Iterator<Item = FileMapping> {
        FileMapping::parse_all(&self.maps)
    }

    /// Whether there is executable memory at an address.
    pub(super) fn has_code(&self, address: u64) -> bool {
        let mut all = MemoryMapping::parse_all(&self.maps);
        let is_code =
            |permissions: [bool; 3], range: &Range<u64>| permissions[2] && range.contains(&address);
        all.any(|map| is_code(map.permissions, &map.range))
            || self.files().any(|map| is_code(map.permissions, &map.range))
    }

    /// Whether its mappings are still those that were read.
    pub(super) fn is_unchanged(&self) -> bool {
        read_maps(self.pid, Patience::Usual).is_ok_and(|maps| maps == self.maps)
    }

    /// Up to `N` bytes at an address; none where nothing can be read, as beyond the end of a file that was cut.
    ///
    /// # Errors
    /// `Interrupted` if the program whose memory it is has ended; others of pread(2) on `/proc/PID/mem`.
    pub fn bytes<const N: usize>(&self, address: u64) -> io::Result<Vec<u8>> {
        let mut bytes = [0; N];
        match self.memory.read_at(&mut bytes, address) {
            // fs/proc/base.c, `mem_rw`.
            Ok(0) => Err(io::ErrorKind::Interrupted.into()),
            Ok(count) => Ok(bytes.get(..count).unwrap_or_default().to_vec()),
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The number of 32 or 64 bits at an address, of a little-endian machine.
    ///
    /// # Errors
    /// The errors of [`ProcessMemory::bytes`].
    pub fn word(&self, address: u64, is_wide: bool) -> io::Result<Option<u64>> {
        let bytes = self.bytes::<8>(address)?;
        Ok(match is_wide {
            true => bytes.first_chunk().map(|word| u64::from_le_bytes(*word)),
            false => bytes
                .first_chunk()
                .map(|word| u32::from_le_bytes(*word).into()),
        })
    }

    /// Writes to an address. The caller has checked what is mapped there.
    ///
    /// # Errors
    /// The errors of pwrite(2) on `/proc/PID/mem`.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// What the page at an address is.
    pub fn page(&self, address: u64) -> Page {
        let entry = || {
            let pagemap = ProcessFile::page_map(self.pid, Patience::Usual).ok()?;
            let mut entry = [0; 8];
            let at = address / rustix::param::page_size() as u64 * 8;
            pagemap.read_exact_at(&mut entry, at).ok()?;
            Some(u64::from_ne_bytes(entry))
        };
        entry().map_or(Page::Unknown, Page::from_entry)
    }
}

/// The address of a file offset in a mapping.
pub fn address_of(map: &FileMapping, offset: u64) -> Option<u64> {
    let address = map
        .range
        .start
        .checked_add(offset.checked_sub(map.offset)?)?;
    map.range.contains(&address).then_some(address)
}
