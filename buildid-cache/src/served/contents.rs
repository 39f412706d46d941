//! The content of a file, which this process reads itself, or a helper.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::file_stat::FileStat;
use super::helpers::{Patience, Reader, ask, no_answer};
use super::message::{MAX_READ, Task, numbers, put};
use crate::file_mapping::{DeviceNumber, MappedInode};

/// How long all answers about a file may take, and the share of the time since it was opened that is added: one who answers each read at the last
/// moment would hold what reads very much.
const MAX_WAIT: Duration = Duration::from_secs(5);
const WAIT_SHARE: u32 = 10;
/// How long all comparisons of a file with others may take: it may be that of the others.
const MAX_COMPARED: Duration = Duration::from_secs(1);
/// Number of bytes that are read at least: headers are read in small pieces.
const READ_AHEAD: usize = 1 << 14;
/// For how long they are known.
const AHEAD_TIME: Duration = Duration::from_secs(1);

/// The content of an open file.
#[derive(Debug)]
pub enum Contents {
    /// Of a file that is known to be local, or that the user of this program named.
    Local(File),
    /// Of another one, which a helper reads.
    Served(ServedFile),
}

/// A file that a helper reads. Its handle here cannot be read (`O_PATH`): neither opening nor closing such a handle asks the file system.
#[derive(Debug)]
pub struct ServedFile {
    handle: OwnedFd,
    /// Distinguishes it from others for helpers.
    number: u64,
    reader: Reader,
    opened: Instant,
    /// How long answers took, ns.
    waited: AtomicU64,
    /// How long comparisons with others took, ns.
    compared: AtomicU64,
    ahead: Mutex<Option<ReadAhead>>,
}

/// What was read last.
#[derive(Debug)]
struct ReadAhead {
    offset: u64,
    bytes: Vec<u8>,
    since: Instant,
}

impl ServedFile {
    pub(super) fn new(handle: OwnedFd, reader: Reader) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            handle,
            number: NUMBER.fetch_add(1, Relaxed),
            reader,
            opened: Instant::now(),
            waited: AtomicU64::new(0),
            compared: AtomicU64::new(0),
            ahead: Mutex::default(),
        }
    }

    /// Gives answers the usual time from now on.
    pub(crate) const fn set_patient(&mut self) {
        self.reader.patience = Patience::Usual;
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if buffer.len() >= READ_AHEAD {
            let bytes = self.read(offset, buffer.len().min(MAX_READ))?;
            return Ok(copy(&bytes, buffer));
        }
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ahead
            .as_ref()
            .and_then(|ahead| ahead.find(buffer.len(), offset));
        if let Some(known) = known {
            return Ok(copy(known, buffer));
        }
        let bytes = self.read(offset, READ_AHEAD)?;
        let count = copy(&bytes, buffer);
        *ahead = Some(ReadAhead {
            offset,
            bytes,
            since: Instant::now(),
        });
        Ok(count)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.ask(Task::Read, &[offset, len as u64])?;
        bytes.truncate(len);
        Ok(bytes)
    }

    fn cache_page(&self, page: u64) -> io::Result<bool> {
        Ok(self.ask(Task::CachePage, &[page])? == [1])
    }

    fn ask(&self, task: Task, values: &[u64]) -> io::Result<Vec<u8>> {
        let mut request = vec![task.byte()];
        put(&mut request, &[self.number]);
        put(&mut request, values);
        self.ask_about(&request, &[self.handle.as_fd()])
    }

    /// Brings the first page into memory, as comparing it does.
    fn compare_with_itself(&self) -> io::Result<()> {
        let handle = self.handle.as_fd();
        self.ask_about(&[Task::ComparePages.byte()], &[handle, handle])?;
        Ok(())
    }

    fn ask_about(&self, request: &[u8], handles: &[BorrowedFd<'_>]) -> io::Result<Vec<u8>> {
        let begun = Instant::now();
        let most = MAX_WAIT + begun.duration_since(self.opened) / WAIT_SHARE;
        if Duration::from_nanos(self.waited.load(Relaxed)) >= most {
            return Err(no_answer());
        }
        let answer = ask(&self.reader, request, handles);
        add_time(&self.waited, begun);
        Ok(answer?.bytes)
    }
}

fn add_time(total: &AtomicU64, begun: Instant) {
    let time = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    total.fetch_add(time, Relaxed);
}

impl ReadAhead {
    fn find(&self, len: usize, offset: u64) -> Option<&[u8]> {
        if self.since.elapsed() > AHEAD_TIME {
            return None;
        }
        let begin = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(begin..begin.checked_add(len)?)
    }
}

fn copy(bytes: &[u8], buffer: &mut [u8]) -> usize {
    let count = bytes.len().min(buffer.len());
    if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
        to.copy_from_slice(from);
    }
    count
}

impl Contents {
    /// The file, if this process reads it itself.
    #[must_use]
    pub const fn local(&self) -> Option<&File> {
        match self {
            Self::Local(file) => Some(file),
            Self::Served(_) => None,
        }
    }

    /// What the file system says of the file now.
    ///
    /// # Errors
    /// The error of the system call; `TimedOut` if the file system does not answer.
    pub fn stat(&self) -> io::Result<FileStat> {
        match self {
            Self::Local(file) => FileStat::of(file.as_fd()),
            Self::Served(file) => {
                let request = [Task::Describe.byte()];
                let answer = ask(&file.reader, &request, &[file.handle.as_fd()])?;
                FileStat::parse(&answer.bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
        }
    }

    /// Whether the first page of both files is one frame of memory, as a helper says; `None` if that is not known.
    ///
    /// # Errors
    /// The error of mapping a file; `TimedOut` if the file system does not answer.
    pub fn is_same_page(&self, other: &Self) -> io::Result<Option<bool>> {
        let served = [self, other].into_iter().filter_map(Self::served);
        // Each first for itself: neither pays for a wait for the other one.
        for file in served.clone() {
            file.compare_with_itself()?;
        }
        let Some(first) = served.clone().next() else {
            return Ok(None);
        };
        let mut compared = served.clone().map(|file| file.compared.load(Relaxed));
        if compared.any(|time| Duration::from_nanos(time) >= MAX_COMPARED) {
            return Ok(None);
        }
        let begun = Instant::now();
        let reader = Reader::of_unknown(first.reader.patience);
        let handles = [self.as_fd(), other.as_fd()];
        let answer = ask(&reader, &[Task::ComparePages.byte()], &handles);
        served.for_each(|file| add_time(&file.compared, begun));
        Ok(answer?.bytes.first().map(|byte| *byte == 1))
    }

    const fn served(&self) -> Option<&ServedFile> {
        match self {
            Self::Local(_) => None,
            Self::Served(file) => Some(file),
        }
    }

    /// Has a helper bring a page, by its index, into the page cache, if the file is one that helpers read. Returns whether it is there.
    ///
    /// # Errors
    /// The error of the helper's system call; `TimedOut` if the file system does not answer.
    pub fn cache_page(&self, page: u64) -> io::Result<bool> {
        match self {
            Self::Local(_) => Ok(false),
            Self::Served(file) => file.cache_page(page),
        }
    }

    /// How a file that helpers read appears among mappings, as one of them says; `None` if that is not known.
    #[must_use]
    pub fn mapped_as(&self) -> Option<MappedInode> {
        let Self::Served(file) = self else {
            return None;
        };
        let [major, minor, inode] = numbers(&file.ask(Task::Identify, &[]).ok()?)?;
        let device = DeviceNumber {
            major: major.try_into().ok()?,
            minor: minor.try_into().ok()?,
        };
        Some(MappedInode { device, inode })
    }

    /// Reads at an offset, as `pread(2)`.
    ///
    /// # Errors
    /// The error of the system call; `TimedOut` if the file system does not answer.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read_at(buffer, offset),
            Self::Served(file) => file.read_at(buffer, offset),
        }
    }

    /// The file, or a temporary copy of one that a helper reads, of at most `limit` bytes.
    ///
    /// # Errors
    /// The errors of `dup(2)`, of reading and of making a file; `FileTooLarge`.
    pub fn local_copy(&self, limit: u64) -> io::Result<File> {
        if let Self::Local(file) = self {
            return file.try_clone();
        }
        let mut copy = tempfile::tempfile()?;
        let mut piece = vec![0; MAX_READ];
        let mut at = 0;
        loop {
            let count = self.read_at(&mut piece, at)?;
            let piece = piece.get(..count).unwrap_or_default();
            if piece.is_empty() {
                copy.rewind()?;
                return Ok(copy);
            }
            at += count as u64;
            if at > limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            copy.write_all(piece)?;
        }
    }

    /// Reads all bytes at an offset.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); `UnexpectedEof` if the file has fewer.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                    offset = offset.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Contents {
    /// The file; of one that a helper reads a handle, which cannot be read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Local(file) => file.as_fd(),
            Self::Served(file) => file.handle.as_fd(),
        }
    }
}

/// A reader with a position of its own.
#[derive(Debug)]
pub struct PositionedReader {
    contents: Arc<Contents>,
    len: u64,
    at: u64,
}

impl PositionedReader {
    pub(crate) const fn new(contents: Arc<Contents>, len: u64) -> Self {
        Self {
            contents,
            len,
            at: 0,
        }
    }
}

impl Read for PositionedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.contents.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for PositionedReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
