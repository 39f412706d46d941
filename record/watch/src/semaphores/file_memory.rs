//! A file in the memory of a process.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use usdtrec_buildid_cache::{FileMapping, MappedInode};
use usdtrec_kernel::host::run_directory;

use super::file::{CountedFile, Semaphore};
use crate::limits::MAX_MAPPINGS_OF_FILE;
use crate::verify::{ProcessMemory, address_of};

/// The mappings of a file in a process, and its memory, both as they were when this was opened: after an `execve(2)` nothing can be read or
/// written.
#[derive(Debug)]
pub(super) struct FileMemory {
    memory: Arc<ProcessMemory>,
    mappings: Arc<Vec<FileMapping>>,
}

/// The same of all files of a process.
#[derive(Debug)]
pub(super) struct AllMemory {
    memory: Arc<ProcessMemory>,
    mappings: HashMap<MappedInode, Arc<Vec<FileMapping>>>,
}

impl AllMemory {
    /// Reads what a process has mapped of files.
    ///
    /// # Errors
    /// As [`FileMemory::open`].
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let memory = open(pid)?;
        let mut mappings: HashMap<_, Vec<FileMapping>> = HashMap::new();
        for map in memory.files() {
            mappings.entry(map.mapped_inode()).or_default().push(map);
        }
        let mappings = mappings.into_iter();
        Ok(Self {
            memory,
            mappings: mappings
                .map(|(file, maps)| (file, Arc::new(maps)))
                .collect(),
        })
    }

    /// What it has mapped of a file.
    ///
    /// # Errors
    /// It maps the file too often.
    pub(super) fn of_file(&self, file: MappedInode) -> io::Result<FileMemory> {
        let mappings = self.mappings.get(&file).cloned().unwrap_or_default();
        let number = mappings.len();
        if number > MAX_MAPPINGS_OF_FILE {
            return Err(io::Error::other(format!(
                "expected at most {MAX_MAPPINGS_OF_FILE} mappings of the file in the process, found {number}"
            )));
        }
        Ok(FileMemory {
            memory: Arc::clone(&self.memory),
            mappings,
        })
    }
}

/// The memory of the process that was looked at last: any user's process may have so many mappings that they cannot be read for each of its semaphores.
#[derive(Debug, Default)]
pub(super) struct LastMemory(Option<ReadMemory>);

#[derive(Debug)]
struct ReadMemory {
    pid: u32,
    start: u64,
    memory: AllMemory,
    /// When it is read again.
    until: Instant,
}

impl LastMemory {
    /// Shortest time after which mappings are read again, and its ratio to the time that reading them took.
    const MIN_AGE: Duration = Duration::from_micros(500);
    const AGE_RATIO: u32 = 20;

    /// What a process that began at a time has mapped of a file.
    ///
    /// # Errors
    /// As [`FileMemory::open`].
    pub(super) fn of_file(
        &mut self,
        pid: u32,
        start: u64,
        file: MappedInode,
    ) -> io::Result<FileMemory> {
        let begun = Instant::now();
        let is_it =
            |read: &&ReadMemory| (read.pid, read.start) == (pid, start) && begun < read.until;
        if let Some(read) = self.0.as_ref().filter(is_it) {
            return read.memory.of_file(file);
        }
        self.0 = None;
        let memory = AllMemory::open(pid)?;
        let found = memory.of_file(file);
        let age = Self::MIN_AGE.max(begun.elapsed() * Self::AGE_RATIO);
        self.0 = Some(ReadMemory {
            pid,
            start,
            memory,
            until: Instant::now() + age,
        });
        found
    }
}

/// Opens the memory of a process: before its mappings are read. If it executes a program now, these are those of memory that this cannot write.
fn open(pid: u32) -> io::Result<Arc<ProcessMemory>> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    Ok(Arc::new(ProcessMemory::open_writable(pid)?))
}

/// A change of a semaphore.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) address: u64,
    pub(super) by: i32,
}

/// A semaphore could not be changed.
#[derive(Debug)]
pub(super) struct PartlyChanged {
    pub(super) error: io::Error,
    /// The addresses of those whose change could not be taken back.
    pub(super) left: Vec<u64>,
}

impl FileMemory {
    /// Reads what a process has mapped of a file.
    ///
    /// # Errors
    /// The errors of [`ProcessMemory::open_writable`]; it maps the file too often.
    pub(super) fn open(pid: u32, file: MappedInode) -> io::Result<Self> {
        AllMemory::open(pid)?.of_file(file)
    }

    /// The load biases at which the file is mapped.
    pub(super) fn biases(&self, file: &CountedFile) -> Vec<u64> {
        let page = rustix::param::page_size() as u64;
        let code = self.mappings.iter().filter(|map| map.permissions[2]);
        let biases =
            code.filter_map(|map| file.object.load_bias(map.range.start, map.offset, page));
        let mut biases: Vec<u64> = biases.collect();
        biases.sort_unstable();
        biases.dedup();
        biases
    }

    /// Whether the memory of all semaphores is mapped.
    pub(super) fn has_semaphores(&self, file: &CountedFile, bias: u64) -> bool {
        let mut semaphores = file.semaphores.iter();
        semaphores.all(|semaphore| self.has(semaphore.offset, semaphore.at(bias)))
    }

    /// Whether an address is that of a file offset, in memory of the process's own that can be written.
    pub(super) fn has(&self, offset: u64, address: u64) -> bool {
        self.own(offset).any(|found| found == address)
    }

    /// Whether exactly one writable mapping has each semaphore that the kernel may count: the loader is done.
    pub(super) fn is_loaded(&self, file: &CountedFile) -> bool {
        let mut counted = file
            .semaphores
            .iter()
            .filter(|semaphore| semaphore.place.is_some());
        counted.all(|semaphore| self.own(semaphore.offset).count() == 1)
    }

    fn own(&self, offset: u64) -> impl Iterator<Item = u64> {
        let own = self.mappings.iter();
        own.filter(|map| map.permissions[1] && map.is_private)
            .filter_map(move |map| address_of(map, offset))
    }

    /// The number of breakpoints at the place of a semaphore, where the file has 0.
    pub(super) fn breakpoints(&self, semaphore: &Semaphore) -> usize {
        let Some(place) = semaphore.place else {
            return 0;
        };
        let addresses = self
            .mappings
            .iter()
            .filter_map(|map| address_of(map, place));
        let is_changed = |address: &u64| {
            let found = self.memory.bytes::<1>(*address);
            found.is_ok_and(|found| found.first().is_some_and(|byte| *byte != 0))
        };
        addresses.filter(is_changed).count()
    }

    /// The semaphore at an address.
    ///
    /// # Errors
    /// The errors of pread(2); `UnexpectedEof` if nothing is mapped there.
    pub(super) fn semaphore(&self, address: u64) -> io::Result<u16> {
        let bytes = self.memory.bytes::<2>(address)?;
        let bytes = bytes.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(u16::from_ne_bytes(*bytes))
    }

    /// Makes all changes, or, if one fails, none.
    ///
    /// # Errors
    /// [`PartlyChanged`].
    pub(super) fn change_all(&self, changes: &[Change]) -> Result<(), PartlyChanged> {
        for (done, change) in changes.iter().enumerate() {
            if let Err(error) = self.add(change.address, change.by) {
                let done = changes.iter().take(done);
                let left = done.filter(|done| self.add(done.address, -done.by).is_err());
                return Err(PartlyChanged {
                    left: left.map(|done| done.address).collect(),
                    error,
                });
            }
        }
        Ok(())
    }

    /// Adds to the semaphore at an address, unless it would leave the range that the kernel allows. [`has`](Self::has) is true of it.
    ///
    /// # Errors
    /// The errors of pread(2) and pwrite(2).
    pub(super) fn add(&self, address: u64, change: i32) -> io::Result<()> {
        const MAX_LOCK_TIME: Duration = Duration::from_millis(20);
        /// The kernel refuses to exceed it (`__update_ref_ctr`, a signed 16-bit number).
        const LARGEST: i32 = i16::MAX as i32;
        // Other recorders change it in the same way. One that is stopped meanwhile keeps nobody from it.
        let _lock = run_directory::lock(MAX_LOCK_TIME);
        let value = i32::from(self.semaphore(address)?).saturating_add(change);
        match u16::try_from(value) {
            Ok(value) if i32::from(value) <= LARGEST => {
                self.memory.write(address, &value.to_ne_bytes())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::super::stored_increments::start_of;
    use super::*;

    /// Any user's process may have so many mappings that reading them takes long.
    #[test]
    fn mappings_are_not_read_for_each_semaphore_of_a_process() {
        let own = std::process::id();
        let start = start_of(own).unwrap();
        let file = open(own).unwrap().files().next().unwrap().mapped_inode();
        let mut last = LastMemory::default();
        let first = last.of_file(own, start, file).unwrap();
        let read = last.0.as_mut().unwrap();
        read.until += Duration::from_secs(3600);
        let second = last.of_file(own, start, file).unwrap();
        assert!(Arc::ptr_eq(&first.memory, &second.memory));
        let later = last.of_file(own, start + 1, file).unwrap();
        assert!(!Arc::ptr_eq(&first.memory, &later.memory));
        last.0.as_mut().unwrap().until = Instant::now();
        let again = last.of_file(own, start + 1, file).unwrap();
        assert!(!Arc::ptr_eq(&later.memory, &again.memory));
    }

    #[test]
    fn a_file_that_a_process_maps_very_often_is_left_alone() {
        let file = tempfile::tempfile().unwrap();
        let page = rustix::param::page_size();
        file.set_len(page as u64).unwrap();
        let map = || {
            let (any, descriptor) = (std::ptr::null_mut(), file.as_raw_fd());
            let (rights, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
            // SAFETY: the kernel chooses the address, and nobody uses the memory.
            let map = unsafe { libc::mmap(any, page, rights, flags, descriptor, 0) };
            assert_ne!(map, libc::MAP_FAILED);
            map as u64
        };
        let first = map();
        let own = std::process::id();
        let mut all = open(own).unwrap().files().collect::<Vec<_>>().into_iter();
        let mapped = all.find(|map| map.range.contains(&first)).unwrap();
        assert!(FileMemory::open(own, mapped.mapped_inode()).is_ok());
        for _ in 0..MAX_MAPPINGS_OF_FILE {
            map();
        }
        assert!(FileMemory::open(own, mapped.mapped_inode()).is_err());
    }
}
