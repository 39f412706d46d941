//! Memory of other processes. Reading or writing it may wait as long as such a process wants: for its file system, or for who answers for the memory
//! (userfaultfd(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;

use super::helpers::{Patience, Reader, are_used, ask};
use super::message::{MAX_READ, Task, put};
use crate::live_thread::live_directory;

/// The memory of a process, open (`/proc/PID/mem`). It stays that of the program that ran when it was opened.
#[derive(Debug)]
pub struct Memory {
    file: File,
    reader: Reader,
}

impl Memory {
    /// Opens it, for writing, too, if wanted.
    ///
    /// # Errors
    /// `NotFound` if the process has ended, `PermissionDenied` without `CAP_SYS_PTRACE` or the same user.
    pub fn open(pid: u32, is_writable: bool, patience: Patience) -> io::Result<Self> {
        let mut options = File::options();
        let options = options.read(true).write(is_writable);
        Ok(Self {
            file: options.open(live_directory(pid).join("mem"))?,
            reader: Reader::of_process(pid.cast_signed(), patience),
        })
    }

    /// Reads at an address. Returns the number of bytes, which may be less than wanted, and is 0 if the program has ended.
    ///
    /// # Errors
    /// That of `pread(2)`; `TimedOut` if the memory cannot be read in time.
    pub fn read_at(&self, buffer: &mut [u8], address: u64) -> io::Result<usize> {
        if !are_used() {
            return self.file.read_at(buffer, address);
        }
        let len = buffer.len().min(MAX_READ);
        let mut request = vec![Task::ReadMemory.byte()];
        put(&mut request, &[address, len as u64]);
        let bytes = ask(&self.reader, &request, &[self.file.as_fd()])?.bytes;
        let count = bytes.len().min(len);
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    /// Reads all bytes at an address.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); `UnexpectedEof` if there are fewer.
    pub fn read_exact_at(&self, buffer: &mut [u8], address: u64) -> io::Result<()> {
        match self.read_at(buffer, address)? == buffer.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Writes a few bytes at an address.
    ///
    /// # Errors
    /// That of `pwrite(2)`; `TimedOut` if the memory cannot be written in time.
    pub fn write_all_at(&self, bytes: &[u8], address: u64) -> io::Result<()> {
        if !are_used() {
            return self.file.write_all_at(bytes, address);
        }
        let mut request = vec![Task::WriteMemory.byte()];
        put(&mut request, &[address]);
        request.extend(bytes);
        ask(&self.reader, &request, &[self.file.as_fd()]).map(drop)
    }
}
