//! An open file with probes, with the parts that planning reads.
//!
//! A file is opened once. Between a check by path and `BPF_LINK_CREATE` the owner of a file could exchange it, and the
//! kernel would write to a different file: a semaphore is a file offset at which the kernel adds 1. Therefore selection
//! opens the file (for `-p` through the mapping's link in `map_files`), everything is read from this descriptor, and
//! the kernel gets `/proc/self/fd/N`. A site must be in the file's own notes; the cache only determines which files are
//! opened.
//!
//! Programs that copy their code to huge pages when they start, with the breakpoints in it, and execute these: BOLT's `hugify`
//! (`bolt/runtime/hugify.cpp`).
//!
//! The first runtime has the symbol `__bolt_hugify_init_ptr` and copies on every kernel that Linux has released. The later one, with
//! `__bolt_hugify_start_program`, only advises the kernel (madvise(2)) on Linux 5.10 and later with transparent huge pages; else it copies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, fs, io};

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSymbol};
use usdtrec_buildid_cache::elf::{Excerpt, ObjectFile};
use usdtrec_kernel::host::cached_pages::CachedPages;
use usdtrec_kernel::host::page_reading::NotCached;

use crate::places::Place;
use crate::plan::frame::Frames;
use crate::plan::symbols::Symbols;

/// An open file with probes. Its unwind table and its symbols are read once, on first use.
pub struct Program {
    file: Arc<ObjectFile>,
    parts: Mutex<Parts>,
    /// What its probes take of the limits, while they are attached.
    places: Mutex<Vec<Place>>,
    pages: CachedPages,
}

/// The parts that were read.
#[derive(Default)]
struct Parts {
    frames: Option<Arc<Frames>>,
    symbols: Option<Arc<Symbols>>,
}

impl Program {
    /// An open file of which nothing is read yet.
    #[must_use]
    pub fn new(file: Arc<ObjectFile>) -> Self {
        Self {
            file,
            parts: Mutex::default(),
            places: Mutex::default(),
            pages: CachedPages::default(),
        }
    }

    /// Keeps places until its probes are detached.
    pub fn hold(&self, place: Place) {
        self.places().push(place);
    }

    /// Its probes are detached: gives its places back.
    pub fn give_back(&self) {
        self.places().clear();
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &Arc<ObjectFile> {
        &self.file
    }

    /// The frames of its functions, from the unwind table.
    pub fn frames(&self) -> Arc<Frames> {
        let mut parts = self.parts();
        let frames = &mut parts.frames;
        Arc::clone(frames.get_or_insert_with(|| Arc::new(Frames::for_file(&self.file))))
    }

    /// Its symbols.
    pub fn symbols(&self) -> Arc<Symbols> {
        let mut parts = self.parts();
        let symbols = &mut parts.symbols;
        Arc::clone(symbols.get_or_insert_with(|| Arc::new(Symbols::from_file(&self.file))))
    }

    /// Reads pages, and keeps them in the page cache. Returns those that are not there ([`CachedPages::keep`]).
    pub fn keep_pages(&self, pages: impl IntoIterator<Item = u64>) -> BTreeMap<u64, NotCached> {
        self.pages.keep((&*self.file).into(), pages)
    }

    /// Attaches although pages are not in the page cache.
    pub fn force_pages(&self) {
        self.pages.force();
    }

    /// Checks right before attaching that the pages which the kernel reads then are in the page cache.
    ///
    /// # Errors
    /// [`NotCached`], as the source of an error.
    pub fn check_pages(&self, pages: impl IntoIterator<Item = u64>) -> io::Result<()> {
        self.pages.check((&*self.file).into(), pages)
    }

    /// Frees what was read. The file stays open.
    pub fn free(&self) {
        *self.parts() = Parts::default();
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Programs of the same file are equal.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.file.path()).finish()
    }
}

/// Beginning of the names of the runtime's symbols.
const BEGINNING: &str = "__bolt_hugify_";

/// The symbol by which a program is known to copy its code on this host; `None` if nothing says that it does.
pub(super) fn copying_symbol(file: &ObjectFile) -> Option<String> {
    let tables = file.symbol_tables().ok()?;
    let parsed = ElfFile::<FileHeader64<Endianness>, &Excerpt>::parse(&tables).ok()?;
    let names = parsed.symbols().chain(parsed.dynamic_symbols());
    let names = names.filter_map(|symbol| symbol.name().ok());
    let names: Vec<&str> = names.filter(|name| name.starts_with(BEGINNING)).collect();
    let has = |name: &str| names.contains(&name);
    let only_advises = has("__bolt_hugify_start_program") && has_huge_pages_of_files();
    if only_advises && !has("__bolt_hugify_init_ptr") {
        return None;
    }
    let first = names.iter().find(|name| **name == "__bolt_hugify_self");
    first.or(names.first()).map(|name| (*name).to_owned())
}

/// Whether the runtime finds that it need not copy.
fn has_huge_pages_of_files() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_enabled =
        enabled.is_ok_and(|text| text.contains("[always]") || text.contains("[madvise]"));
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    is_enabled && (number(), number()) >= (Some(5), Some(10))
}
