//! Files with probes in all processes, and who maps them: the kernel inserts breakpoints in *each* private mapping that may become executable, also of a
//! program that only reads the file, and writes what it has read somewhere else.
//!
//! Programs at the end of `mmap` and at `execve` look up the inode of the file. Of a mapping without the right to execute they note the process, if that
//! does not execute the file, too: loaders map a file as readers do, and execute it a moment later. Of one with this right they note the time, so
//! that it is known which files nobody executes. The recorder detaches the probes of these, and the programs hold the next thread that executes
//! one, until they are attached again: by the work with which [children](super::hold) are held, within the same limits. Before Linux 6.18
//! the thread runs on, and its gap is reported.
//!
//! Inodes are known by their addresses in the kernel: the recorder maps each file once, and the program takes the inode that it sees then. The
//! file stays open while it is watched, so that no other inode gets the address. `uprobe_mmap` would be the place where a program sees exactly the
//! mappings in which the kernel attaches probes, but not all hosts allow programs on functions of the kernel (seen on Linux 6.18: `EPERM`).
//!
//! A thread that executes the file by `mprotect`, or as the loader of its program, is not seen, nor are mappings while another program on the
//! same CPU was interrupted ([`missed`](WatchedFiles::missed)): the recorder looks for these among the mappings of all processes.

mod kernel;
mod program;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::insn::Map;
use usdtrec_kernel::bpf::rings::{Left, Ring};
use usdtrec_kernel::bpf::sys::{self, MapKind, MapShape};

use self::kernel::{
    ATTACHED, EXECUTED, FILE_BYTES, FIRST_UNIT, HEAD_BYTES, IDLE, LAST_UNIT, LEARNED, LEARNING,
    MAX_FILES, READER_BYTES, SPACE_BYTES, STATE, WatchKernel,
};
use self::program::{CALL_BYTES, UNIT_SHIFT};
use super::super::control::Control;
use super::super::kernel_objects::{MappedWords, TracepointProgram};
use super::hold::work;

/// Size of the ring of calls, bytes: more than 1,000.
const RING: usize = 64 << 10;
/// Maximum number of readers between two looks, and of processes that are known to execute files. Of more, the oldest are forgotten.
const MAX_READERS: u32 = 1024;
const MAX_EXECUTING: u32 = 8192;
/// Twice the maximum number of threads that are held at a time.
const MAX_WORKS: u32 = 4096;

/// From addresses of inodes to numbers of files.
const INODE_SHAPE: MapShape = MapShape {
    key_size: size_of::<Inode>() as u32,
    value_size: size_of::<u32>() as u32,
    entries: MAX_FILES as u32,
};
const READER_SHAPE: MapShape = MapShape {
    key_size: SPACE_BYTES as u32,
    value_size: READER_BYTES as u32,
    entries: MAX_READERS,
};

/// The address of an inode in the kernel, as in the map.
type Inode = [u8; 8];

/// The programs, and their maps.
#[derive(Debug)]
pub struct WatchedFiles {
    programs: [TracepointProgram; 2],
    calls: Ring,
    inodes: OwnedFd,
    readers: OwnedFd,
    words: MappedWords,
    control: Control,
    /// Numbers that no file has. The one that was given back last is taken last: records of the file that had it may still arrive.
    free: VecDeque<u32>,
    /// No work of it is run when it is closed; `None` if threads are not held.
    works: Option<OwnedFd>,
}

/// A thread executes a file that has no probes.
#[derive(Clone, Copy, Debug)]
pub struct FileCall {
    /// Number of the file.
    pub file: u32,
    /// When, ns of the trace's clock.
    pub time: u64,
    /// Its process.
    pub pid: i32,
    /// Whether it is held.
    pub is_held: bool,
}

/// A process that maps a file with probes, and does not execute it.
#[derive(Clone, Debug)]
pub struct FileReader {
    /// Number of the file.
    pub file: u32,
    /// When it mapped it, ns of the trace's clock.
    pub time: u64,
    pub pid: i32,
    /// Name of its thread.
    pub name: String,
    key: [u8; SPACE_BYTES],
}

impl WatchedFiles {
    /// Watches no file yet.
    ///
    /// # Errors
    /// The kernel does not describe its structures, programs cannot be run at its functions, or an error of bpf(2).
    pub(in crate::engine::bpf) fn new(running: RunningKernel<'_>) -> io::Result<Self> {
        let mut kernel = WatchKernel::find(running)?;
        let control = Control::new(0, 0, None)?;
        let works = kernel.hold.and_then(|hold| {
            let works = sys::create_works(MAX_WORKS).ok()?;
            work::try_out(hold.schedule, works.as_fd(), &control).ok()?;
            Some(works)
        });
        if works.is_none() {
            kernel.hold = None;
        }
        let inodes = sys::create_map(MapKind::Hash, INODE_SHAPE)?;
        let bytes = HEAD_BYTES + MAX_FILES * FILE_BYTES;
        let files = sys::create_array(bytes as u32, 1)?;
        let readers = sys::create_map(MapKind::LruHash, READER_SHAPE)?;
        let executing =
            sys::create_map_of::<[u8; SPACE_BYTES], u32>(MapKind::LruHash, MAX_EXECUTING)?;
        let calls = Ring::new(RING, rustix::param::page_size(), None)?;
        let attach = |tracepoint, code| {
            TracepointProgram::attach(tracepoint, code, |map| match map {
                Map::WatchedInodes => inodes.as_fd(),
                Map::WatchedFiles => files.as_fd(),
                Map::Readers => readers.as_fd(),
                Map::Executing => executing.as_fd(),
                Map::Calls => calls.as_fd(),
                Map::Held => works.as_ref().map_or(control.as_fd(), AsFd::as_fd),
                _ => control.as_fd(),
            })
        };
        let programs = [
            attach(kernel.unlocked.tracepoint, program::mapped(&kernel))?,
            attach(kernel.common.executed, program::executed(&kernel))?,
        ];
        control.set_looked();
        control.set_holding(works.is_some());
        Ok(Self {
            words: MappedWords::new(files.as_fd(), bytes / 8)?,
            programs,
            calls,
            inodes,
            readers,
            control,
            free: (0..MAX_FILES as u32).collect(),
            works,
        })
    }

    /// Whether threads that execute files without probes are held.
    pub const fn holds(&self) -> bool {
        self.works.is_some()
    }

    /// Watches a file, which `map` maps, with the first and the last site at these offsets of it. Returns its number; `None` if it is not watched.
    pub fn watch(&mut self, first: u64, last: u64, map: impl FnOnce()) -> Option<u32> {
        let [first, last] = [first, last].map(|offset| offset >> UNIT_SHIFT);
        let file = *self.free.front()?;
        self.of_file(file, FIRST_UNIT)?
            .store(first, Ordering::SeqCst);
        self.of_file(file, LAST_UNIT)?.store(last, Ordering::SeqCst);
        self.set_state(file, ATTACHED);
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let learning = u64::from(thread.cast_unsigned()) | u64::from(file) << 32;
        let word = |at: i16| self.words.get(at as usize / 8);
        word(LEARNED)?.store(0, Ordering::SeqCst);
        word(LEARNING)?.store(learning, Ordering::SeqCst);
        map();
        word(LEARNING)?.store(0, Ordering::SeqCst);
        let is_learnt = word(LEARNED)?.load(Ordering::SeqCst) != 0;
        is_learnt.then(|| self.free.pop_front()).flatten()
    }

    /// Watches a file no more: threads that are held for it continue, and its number is free.
    pub fn forget(&mut self, file: u32) {
        self.set_attached(file);
        let mut inode: Option<Inode> = None;
        let read = sys::read_map(self.inodes.as_fd(), INODE_SHAPE, |key, number| {
            if number == file.to_ne_bytes() {
                inode = key.first_chunk().copied();
            }
        });
        let inode = inode.filter(|_| read.is_ok());
        // If the program still knows the inode, the number stays that of the file.
        if inode.is_some_and(|inode| sys::remove(self.inodes.as_fd(), inode).is_ok()) {
            self.free.push_back(file);
        }
    }

    /// When a file was last mapped with the right to execute, ns of the trace's clock; 0 for never.
    pub fn executed(&self, file: u32) -> u64 {
        let word = self.of_file(file, EXECUTED);
        word.map_or(0, |word| word.load(Ordering::SeqCst))
    }

    /// Nobody executes a file: from now on a thread that does is held, and the recorder called.
    pub fn set_idle(&self, file: u32) {
        self.set_state(file, IDLE);
    }

    /// The probes of a file are attached: held threads continue.
    pub fn set_attached(&self, file: u32) {
        self.set_state(file, ATTACHED);
    }

    /// Notes that the recorder runs. Takes the calls that have arrived.
    pub fn take_calls(&mut self) -> Vec<FileCall> {
        self.control.set_looked();
        let mut calls = Vec::new();
        let end = self.calls.written();
        let _: Left = self
            .calls
            .drain(end, |record| calls.extend(FileCall::parse(record)));
        calls
    }

    /// Takes who has mapped files until a time, ns of the trace's clock, and has not executed them since.
    pub fn take_readers(&self, until: u64) -> Vec<FileReader> {
        let mut readers = Vec::new();
        let taken = sys::read_map(self.readers.as_fd(), READER_SHAPE, |key, value| {
            readers.extend(FileReader::parse(key, value));
        });
        if taken.is_err() {
            return Vec::new();
        }
        readers.retain(|reader| reader.time <= until);
        for reader in &readers {
            // It may be forgotten already.
            let _ = sys::remove(self.readers.as_fd(), reader.key);
        }
        readers
    }

    /// Number of mappings that the programs were not run for.
    pub fn missed(&self) -> u64 {
        let missed = |program: &TracepointProgram| sys::recursion_misses(program.program.as_fd());
        self.programs
            .iter()
            .filter_map(|program| missed(program).ok())
            .sum()
    }

    /// Holds no thread any more.
    pub fn end(&self) {
        self.control.set_holding(false);
    }

    fn set_state(&self, file: u32, state: i32) {
        if let Some(word) = self.of_file(file, STATE) {
            word.store(state as u64, Ordering::SeqCst);
        }
    }

    /// A word of a file.
    fn of_file(&self, file: u32, at: i16) -> Option<&AtomicU64> {
        let at = HEAD_BYTES + file as usize * FILE_BYTES + at as usize;
        self.words.get(at / 8)
    }
}

impl AsFd for WatchedFiles {
    /// Readable when the recorder is called.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.calls.as_fd()
    }
}

impl FileCall {
    fn parse(record: &[u8]) -> Option<Self> {
        let [file, time, ids, held] = words(record.first_chunk::<CALL_BYTES>()?);
        Some(Self {
            file: file as u32,
            time,
            pid: (ids >> 32) as i32,
            is_held: held != 0,
        })
    }
}

impl FileReader {
    fn parse(key: &[u8], value: &[u8]) -> Option<Self> {
        let [time, ids, file] = words(value.first_chunk::<24>()?);
        let name = value.get(24..)?;
        let len = name.iter().position(|byte| *byte == 0);
        let name = name.get(..len.unwrap_or(name.len()))?;
        Some(Self {
            file: file as u32,
            time,
            pid: (ids >> 32) as i32,
            name: String::from_utf8_lossy(name).into_owned(),
            key: *key.first_chunk()?,
        })
    }
}

/// The 64-bit words of a record.
fn words<const BYTES: usize, const WORDS: usize>(record: &[u8; BYTES]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(record.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}
