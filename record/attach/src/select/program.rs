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

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Operand;
use usdtrec_kernel::host::cached_pages::CachedPages;
use usdtrec_kernel::host::identity;
use usdtrec_kernel::host::page_reading::NotCached;
use usdtrec_kernel::host::stuck_mappings::stuck_process;

use crate::places::{Exceeded, Place};
use crate::plan::frame::Frames;
use crate::plan::symbols::{NeededSymbols, Symbols};

/// An open file with probes. Its unwind table and the symbols that are needed are read on first use, and kept until they are freed.
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
    symbols: NeededSymbols,
}

/// The program whose sites are planned. Only its unwind table is kept, which may be long: anybody may map any number of files.
#[derive(Debug, Default)]
pub struct CurrentProgram(Option<Arc<Program>>);

impl CurrentProgram {
    /// Sites of this program come next.
    pub fn set(&mut self, program: &Arc<Program>) {
        let before = self.0.replace(Arc::clone(program));
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, program)) {
            before.free_frames();
        }
    }
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

    /// Takes bytes of the head of a trace, if its account has a limit.
    ///
    /// # Errors
    /// [`Exceeded`]: nothing is taken.
    pub fn take_head(&self, bytes: u64) -> Result<(), Exceeded> {
        let places = self.places();
        places
            .first()
            .map_or(Ok(()), |place| place.take_head(bytes))
    }

    /// Its probes are not attached: gives its places back.
    pub fn give_back(&self) {
        self.places().clear();
    }

    /// Its probes are detached: gives its places back. The recording keeps it.
    pub fn release(&self) {
        let places = std::mem::take(&mut *self.places());
        places.into_iter().for_each(Place::release);
        self.pages.free();
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

    /// Notes what operands of its probes need of its symbols.
    pub fn need_symbols<'o>(&self, operands: impl IntoIterator<Item = &'o Operand>) {
        self.parts().symbols.add(operands);
    }

    /// Notes that nobody named the file: large symbol tables are not read.
    pub fn set_found(&self) {
        self.parts().symbols.set_found();
    }

    /// Whether nobody named the file.
    pub fn is_found(&self) -> bool {
        self.parts().symbols.is_found()
    }

    /// The symbols that are needed.
    pub fn symbols(&self) -> Arc<Symbols> {
        self.parts().symbols.of_file(&self.file)
    }

    /// The names of these, to look for them in another file.
    pub fn needed_symbols(&self) -> NeededSymbols {
        self.parts().symbols.unread()
    }

    /// Reads pages, and keeps them in the page cache. Returns those for which the kernel would wait when it attaches ([`CachedPages::keep`]).
    pub fn keep_pages(&self, pages: impl IntoIterator<Item = u64>) -> BTreeMap<u64, NotCached> {
        match self.locked() {
            Some(reason) => pages
                .into_iter()
                .map(|page| (page, reason.clone()))
                .collect(),
            None => self.pages.keep((&*self.file).into(), pages),
        }
    }

    /// Whether the mappings of a process that maps it are locked.
    fn locked(&self) -> Option<NotCached> {
        stuck_process(|| identity::of_file(&self.file)).map(NotCached::LockedMappings)
    }

    /// Attaches although pages are not in the page cache.
    pub fn force_pages(&self) {
        self.pages.force();
    }

    /// Checks right before attaching that the kernel will not wait: the pages which it reads then are in the page cache.
    ///
    /// # Errors
    /// [`NotCached`], as the source of an error.
    pub fn check_pages(&self, pages: impl IntoIterator<Item = u64>) -> io::Result<()> {
        let locked = self.locked().filter(|_| !self.pages.are_forced());
        match locked {
            Some(reason) => Err(io::Error::other(reason)),
            None => self.pages.check((&*self.file).into(), pages),
        }
    }

    /// Frees the unwind table.
    pub fn free_frames(&self) {
        self.parts().frames = None;
    }

    /// Frees what was read. The file stays open.
    pub fn free(&self) {
        let mut parts = self.parts();
        parts.frames = None;
        parts.symbols.free();
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
    let names = file.names_with_prefix(BEGINNING).ok()?;
    let has = |name: &str| names.contains(name);
    let only_advises = has("__bolt_hugify_start_program") && has_huge_pages_of_files();
    if only_advises && !has("__bolt_hugify_init_ptr") {
        return None;
    }
    let own = names.get("__bolt_hugify_self");
    own.or_else(|| names.first()).cloned()
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
