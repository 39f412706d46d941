//! Files of other processes in `/proc/PID`: memory, mappings, page maps. Opening, reading or writing one may wait as long as such a process wants: for who
//! answers for its memory (its file system, userfaultfd(2)), or for the lock of its mappings, which a thread has that waits in munmap(2) or mmap(2).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::helper::open_in;
use super::helpers::{Patience, Reader, are_used, ask};
use super::message::{MAX_READ, Task, put};
use crate::live_thread::live_directory;

/// Maximum size of `/proc/PID/maps` that is read, bytes. A process may have 65,530 mappings (`vm.max_map_count`) with paths of 4 KB each; those
/// of large databases with many more mappings have 30 MB.
const MAX_MAPS_BYTES: u64 = 64 << 20;

/// The name of that of memory.
const MEMORY: &str = "mem";

/// A file of a process in `/proc`, open. It stays that of the program that ran when it was opened.
#[derive(Debug)]
pub struct ProcessFile {
    file: File,
    /// For whom a helper reads it; `None` if it is read here.
    reader: Option<Reader>,
}

impl ProcessFile {
    /// Opens the memory of a process (`/proc/PID/mem`), for writing, too, if wanted.
    ///
    /// # Errors
    /// `NotFound` if the process has ended, `PermissionDenied` without `CAP_SYS_PTRACE` or the same user; `TimedOut`.
    pub fn memory(pid: u32, is_writable: bool, patience: Patience) -> io::Result<Self> {
        Self::open(pid, MEMORY, is_writable, patience)
    }

    /// Opens what the pages of a process are (`/proc/PID/pagemap`).
    ///
    /// # Errors
    /// As [`memory`](Self::memory).
    pub fn page_map(pid: u32, patience: Patience) -> io::Result<Self> {
        Self::open(pid, "pagemap", false, patience)
    }

    /// The first 64 KiB of the environment with which a process began its program (`/proc/PID/environ`).
    ///
    /// # Errors
    /// As [`memory`](Self::memory).
    pub fn environment(pid: u32) -> io::Result<Vec<u8>> {
        let file = Self::open(pid, "environ", false, Patience::Usual)?;
        let mut bytes = vec![0; MAX_READ];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn open(pid: u32, name: &str, is_writable: bool, patience: Patience) -> io::Result<Self> {
        let reader = Reader::of_process(pid.cast_signed(), patience);
        let directory = open_directory(&live_directory(pid))?;
        Self::in_directory(directory.as_fd(), name, is_writable, reader)
    }

    fn in_directory(
        directory: BorrowedFd<'_>,
        name: &str,
        is_writable: bool,
        reader: Reader,
    ) -> io::Result<Self> {
        let here = || open_in(directory, Path::new(name), is_writable);
        if !are_used() {
            let (file, reader) = (here()?, None);
            return Ok(Self { file, reader });
        }
        let kind = [Task::OpenOfProcess.byte(), is_writable.into()];
        let request = [&kind, name.as_bytes()].concat();
        let file = match ask(&reader, &request, &[directory]) {
            Ok(mut answer) => {
                let file = answer.descriptors.pop();
                file.ok_or(io::ErrorKind::InvalidData)?.into()
            }
            // Without CAP_SYS_PTRACE only the parent of a process may read its memory (kernel.yama.ptrace_scope).
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => here()?,
            // There are no helpers any more, nor capabilities: what this user may read is read here, but for memory.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let reader = (name == MEMORY).then_some(reader);
                return Ok(Self {
                    file: here()?,
                    reader,
                });
            }
            Err(error) => return Err(error),
        };
        let reader = Some(reader);
        Ok(Self { file, reader })
    }

    /// Reads at an offset, of memory at an address. Returns the number of bytes, which may be less than wanted, and is 0 if the program has ended.
    ///
    /// # Errors
    /// The error of `pread(2)`; `TimedOut` if it cannot be read in time.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(reader) = &self.reader else {
            return self.file.read_at(buffer, offset);
        };
        let len = buffer.len().min(MAX_READ);
        let mut request = vec![Task::ReadOfProcess.byte()];
        put(&mut request, &[offset, len as u64]);
        let bytes = ask(reader, &request, &[self.file.as_fd()])?.bytes;
        let count = bytes.len().min(len);
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    /// Reads all bytes at an offset.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); `UnexpectedEof` if there are fewer.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_at(buffer, offset)? == buffer.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Writes a few bytes at an address of memory.
    ///
    /// # Errors
    /// The error of `pwrite(2)`; `TimedOut` if the memory cannot be written in time.
    pub fn write_all_at(&self, bytes: &[u8], address: u64) -> io::Result<()> {
        let Some(reader) = &self.reader else {
            return self.file.write_all_at(bytes, address);
        };
        let mut request = vec![Task::WriteMemory.byte()];
        put(&mut request, &[address]);
        request.extend(bytes);
        ask(reader, &request, &[self.file.as_fd()]).map(drop)
    }
}

/// Reads the mappings of a process (`/proc/PID/maps`).
#[derive(Debug)]
pub(crate) struct MapsReader {
    file: ProcessFile,
    offset: u64,
}

impl MapsReader {
    /// Opens those of a process by its directory in `/proc`.
    ///
    /// # Errors
    /// As [`ProcessFile::memory`].
    pub(crate) fn open(directory: BorrowedFd<'_>, reader: Reader) -> io::Result<Self> {
        let file = ProcessFile::in_directory(directory, "maps", false, reader)?;
        Ok(Self { file, offset: 0 })
    }
}

impl Read for MapsReader {
    /// `FileTooLarge` if there are more than [`MAX_MAPS_BYTES`].
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.offset > MAX_MAPS_BYTES {
            let message = format!("the process has more than {MAX_MAPS_BYTES} bytes of mappings");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// The mappings of a process, as text.
///
/// # Errors
/// As [`ProcessFile::memory`]; `FileTooLarge` if there are more than 64 MiB.
pub fn read_maps(pid: u32, patience: Patience) -> io::Result<Vec<u8>> {
    let reader = Reader::of_process(pid.cast_signed(), patience);
    let directory = open_directory(&live_directory(pid))?;
    let mut maps = MapsReader::open(directory.as_fd(), reader)?;
    let (mut text, mut part) = (Vec::new(), vec![0; MAX_READ]);
    loop {
        match maps.read(&mut part)? {
            0 => return Ok(text),
            count => text.extend(part.get(..count).unwrap_or_default()),
        }
    }
}

/// A handle of a process's directory. Getting it asks nothing of the process.
fn open_directory(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, directory, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_whole_up_to_a_limit() {
        let own = std::process::id();
        let maps = read_maps(own, Patience::Usual).unwrap();
        let program = std::env::current_exe().unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        assert!(String::from_utf8_lossy(&maps).contains(name));
        let directory = open_directory(&live_directory(own)).unwrap();
        let reader = Reader::of_unknown(Patience::Usual);
        let mut reader = MapsReader::open(directory.as_fd(), reader).unwrap();
        reader.offset = MAX_MAPS_BYTES + 1;
        let error = reader.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
