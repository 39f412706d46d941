//! Reading pages of a file into the page cache, in a thread: its file system may answer late, or never.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use memmap2::{Mmap, MmapOptions};
use rustix::fs::{Advice, fadvise};
use rustix::param::page_size;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::Contents;

/// How long the file system has to answer for the next page, and for all pages.
const ANSWER_TIME: Duration = Duration::from_secs(1);
const MAX_TIME: Duration = Duration::from_secs(5);
/// For how long one that has not answered is not asked again.
const SILENCE: Duration = Duration::from_secs(10);
/// Maximum number of file systems that have not answered and are known.
const MAX_SILENT: usize = 1024;
/// Maximum number of threads that wait for answers.
const MAX_THREADS: usize = 32;

/// Devices (`st_dev`) whose file systems have not answered, and when.
static SILENT: Mutex<Option<HashMap<u64, Instant>>> = Mutex::new(None);
/// Number of threads.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Why a page is not in the page cache.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCached {
    /// The file has no shared mappings.
    #[error("its file system reads past the page cache (FUSE with direct I/O)")]
    PastCache,
    /// Reading did not end.
    #[error("its file system did not answer within 1 s")]
    NoAnswer,
    /// Reading all pages did not end.
    #[error("its file system did not answer in time: the pages with probes take longer than 5 s")]
    TooSlow,
    /// Reading failed.
    #[error("a page with a probe cannot be read: {0}")]
    Unreadable(String),
    /// A process that maps the file has its mappings locked.
    #[error(
        "process {0} maps it, and has its mappings locked while a thread of it waits for a file system that does not answer (/proc/{0}/task/*/stack)"
    )]
    LockedMappings(i32),
    /// It was read, and is not there.
    #[error("its file system does not keep a page with a probe in the page cache")]
    Discarded,
}

/// An open file, and what is known of it without asking its file system.
#[derive(Clone, Copy, Debug)]
pub struct PagedFile<'a> {
    /// Its bytes.
    pub contents: &'a Contents,
    /// Length, bytes.
    pub len: u64,
    /// Device (`st_dev`).
    pub device: u64,
}

impl<'a> From<&'a ObjectFile> for PagedFile<'a> {
    fn from(file: &'a ObjectFile) -> Self {
        Self {
            contents: file.contents(),
            len: file.len(),
            device: file.id().device,
        }
    }
}

/// The outcome of reading a page.
type Brought = Result<Option<MappedPage>, NotCached>;

/// Brings pages into the page cache, and locks them there.
pub fn bring(file: PagedFile<'_>, pages: &BTreeSet<u64>) -> BTreeMap<u64, Brought> {
    let pages: Vec<u64> = pages.iter().copied().collect();
    let failed = |reason: &NotCached| {
        let pages = pages.iter().map(|&page| (page, Err(reason.clone())));
        pages.collect()
    };
    let local = match file.contents.local().map(File::try_clone).transpose() {
        Ok(Some(local)) => local,
        Ok(None) => return ask_helper(file.contents, &pages),
        Err(error) => return failed(&error.into()),
    };
    let started = start(Reading {
        file: local,
        pages: pages.clone(),
        is_silent: is_silent(file.device),
    });
    let brought = match started {
        Ok(answers) => wait(&pages, &answers),
        Err(error) => return failed(&error.into()),
    };
    let is_late =
        |brought: &Brought| matches!(brought, Err(NotCached::NoAnswer | NotCached::TooSlow));
    if brought.values().any(is_late) {
        note_silent(file.device);
    }
    brought
}

/// Has a helper bring pages of a file that it reads. They are not kept.
fn ask_helper(contents: &Contents, pages: &[u64]) -> BTreeMap<u64, Brought> {
    let mut silent = None;
    let brought = pages.iter().map(|&page| {
        if let Some(reason) = &silent {
            return (page, Err(NotCached::clone(reason)));
        }
        let brought = match contents.cache_page(page) {
            Ok(true) => Ok(None),
            Ok(false) => Err(NotCached::Discarded),
            Err(error) => Err(error.into()),
        };
        if let Err(reason @ NotCached::NoAnswer) = &brought {
            silent = Some(reason.clone());
        }
        (page, brought)
    });
    brought.collect()
}

/// Brings a page of a file into the page cache, for the recorder that this process helps. Returns whether it is there.
///
/// # Errors
/// The error of mapping or reading it.
pub fn cache_page(file: &File, page: u64) -> io::Result<bool> {
    let mapped = MappedPage::new(file, page, false)?;
    if !mapped.is_cached()? {
        let _ = file.read_at(&mut [0], page * page_size() as u64)?;
    }
    Ok(mapped.is_cached()? || MappedPage::new(file, page, true)?.is_cached()?)
}

/// What a thread does.
struct Reading {
    file: File,
    pages: Vec<u64>,
    /// Whether the file system has not answered before, so that nothing is read.
    is_silent: bool,
}

/// Starts a thread that sends what came of each page, in their order. It ends when the file system answers, or nobody waits any longer.
fn start(reading: Reading) -> io::Result<Receiver<Brought>> {
    let permit = Permit::take().ok_or(io::ErrorKind::TimedOut)?;
    let (send, brought) = channel();
    let thread = thread::Builder::new().name("reads pages".to_owned());
    thread.spawn(move || {
        let _permit = permit;
        reading.begin();
        for &page in &reading.pages {
            if send.send(reading.bring(page)).is_err() {
                return;
            }
        }
    })?;
    Ok(brought)
}

impl Reading {
    /// Asks for all pages at once, where the file system can.
    fn begin(&self) {
        let size = page_size() as u64;
        for &page in self.pages.iter().filter(|_| !self.is_silent) {
            let _ = fadvise(
                &self.file,
                page * size,
                NonZeroU64::new(size),
                Advice::WillNeed,
            );
        }
    }

    fn bring(&self, page: u64) -> Brought {
        let mut mapped = MappedPage::new(&self.file, page, false)?;
        if !mapped.is_cached()? {
            if self.is_silent {
                return Err(NotCached::NoAnswer);
            }
            if self.file.read_at(&mut [0], page * page_size() as u64)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if !mapped.is_cached()? {
                mapped = MappedPage::new(&self.file, page, true)?;
            }
        }
        if !mapped.is_cached()? {
            return Err(NotCached::Discarded);
        }
        mapped.lock();
        Ok(Some(mapped))
    }
}

/// Waits for what came of the pages.
fn wait(pages: &[u64], answers: &Receiver<Brought>) -> BTreeMap<u64, Brought> {
    let begun = Instant::now();
    let mut is_over = None;
    let brought = pages.iter().map(|&page| {
        if let Some(reason) = &is_over {
            return (page, Err(NotCached::clone(reason)));
        }
        let left = MAX_TIME.saturating_sub(begun.elapsed());
        let brought = answers.recv_timeout(left.min(ANSWER_TIME));
        let brought = brought.unwrap_or_else(|_| {
            let reason = match left < ANSWER_TIME {
                true => NotCached::TooSlow,
                false => NotCached::NoAnswer,
            };
            Err(is_over.insert(reason).clone())
        });
        (page, brought)
    });
    brought.collect()
}

impl From<io::Error> for NotCached {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            // mmap(2): the file has no shared mappings.
            Some(libc::ENODEV) => Self::PastCache,
            _ if error.kind() == io::ErrorKind::TimedOut => Self::NoAnswer,
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

fn is_silent(device: u64) -> bool {
    let silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
    let since = silent.as_ref().and_then(|silent| silent.get(&device));
    since.is_some_and(|since| since.elapsed() < SILENCE)
}

fn note_silent(device: u64) {
    let mut silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
    let silent = silent.get_or_insert_default();
    silent.retain(|_, since| since.elapsed() < SILENCE);
    if silent.len() < MAX_SILENT {
        silent.insert(device, Instant::now());
    }
}

/// One of the threads.
struct Permit;

impl Permit {
    /// `None` if there are too many.
    fn take() -> Option<Self> {
        let permit = Self;
        (THREADS.fetch_add(1, SeqCst) < MAX_THREADS).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, SeqCst);
    }
}

/// Maximum number of pages that are kept, of all files: they are locked memory. Others are looked at only.
const MAX_KEPT: usize = 4096;

/// Number of pages that are kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A shared mapping of a page of a file.
#[derive(Debug)]
pub struct MappedPage {
    map: Mmap,
    /// Whether it is locked, and counted in `KEPT`.
    pub is_locked: bool,
}

impl MappedPage {
    /// Maps a page; with `populates`, also reads it into the page cache: that of tmpfs has no page for what was never written until it is mapped,
    /// and that of 9p may not have what was read by read(2).
    pub fn new(file: &File, page: u64, populates: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.offset(page * page_size() as u64).len(page_size());
        if populates {
            options.populate();
        }
        // SAFETY: the memory is never read: only its address is used.
        let map = unsafe { options.map(file) }?;
        Ok(Self {
            map,
            is_locked: false,
        })
    }

    /// Whether the page is in the page cache, and up to date. For a user who neither owns the file nor may write to it, it always is (mincore(2)).
    pub fn is_cached(&self) -> io::Result<bool> {
        let mut state = 0;
        // SAFETY: the mapping is one page, for which the kernel writes one byte.
        let failed = unsafe {
            libc::mincore(
                self.map.as_ptr().cast_mut().cast(),
                page_size(),
                &raw mut state,
            )
        };
        match failed {
            0 => Ok(state & 1 != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Locks the page in memory, if there is room. Without permission for it (RLIMIT_MEMLOCK) it may be evicted.
    pub fn lock(&mut self) {
        self.is_locked = true;
        if KEPT.fetch_add(1, Relaxed) < MAX_KEPT {
            let _ = self.map.lock();
        } else {
            self.unlock();
        }
    }

    fn unlock(&mut self) {
        if std::mem::take(&mut self.is_locked) {
            KEPT.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        self.unlock();
    }
}
