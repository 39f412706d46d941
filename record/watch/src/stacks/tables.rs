//! A file that recorded processes have mapped, with its unwind tables.
//!
//! Files that were unwound and are not those at their paths (deleted, replaced, or in another mount namespace; at most
//! 256) stay open until the names of their functions are stored in the trace.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{Contents, Handle, Patience, Reader};
use usdtrec_buildid_cache::{DeviceNumber, file_id};
use usdtrec_format::BuildId;
use usdtrec_format::perf::{ChainCut, Mmap, MmapFile};
use usdtrec_kernel::host::process::live_directory;
use usdtrec_unwind::{Code, CopiedCode, CopiedOriginal, MappedCode, Segments, UnwindTables};

/// How often a file is tried to be read: each time for another sample, whose process may still be there.
const TRIES: u8 = 8;
/// Time between the first two tries; each following one is twice as long. Helpers that read files may be busy for a moment.
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// A mapped file.
#[derive(Debug)]
pub(super) struct MappedFile {
    path: Box<[u8]>,
    identity: MmapFile,
    /// The file itself, if the recorder has it open.
    pub(super) open: Option<Arc<ObjectFile>>,
    /// Its tables, read when first needed.
    tables: OnceCell<ReadTables>,
    /// Its function that is copied, read when first needed.
    original: OnceCell<Option<CopiedOriginal>>,
    tries: Cell<u8>,
    /// When it may be tried again; `None` before the first try.
    next_try: Cell<Option<Instant>>,
    /// The open file, if it is not the one at its path.
    elsewhere: OnceCell<FileElsewhere>,
    room: Rc<DescriptorRoom>,
}

/// A file that recorded processes have mapped, and that is not the one at its path: it is deleted, replaced, or in another mount namespace.
#[derive(Clone, Debug)]
pub struct FileElsewhere {
    /// The path in the trace.
    pub path: PathBuf,
    /// Its build-id, if it has one.
    pub build_id: Option<BuildId>,
    /// The open file.
    pub contents: Arc<Contents>,
}

/// Number of further files that may be kept open.
#[derive(Debug)]
pub(super) struct DescriptorRoom(Cell<usize>);

impl DescriptorRoom {
    /// Maximum number of files.
    const MAX_FILES: usize = 256;

    pub(super) const fn new() -> Self {
        Self(Cell::new(Self::MAX_FILES))
    }

    fn take(&self) -> Option<()> {
        self.0.set(self.0.get().checked_sub(1)?);
        Some(())
    }
}

#[derive(Debug)]
struct ReadTables {
    tables: UnwindTables,
    segments: Segments,
}

/// A mapping of a file by a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedMapping {
    pub(super) pid: i32,
    /// First address.
    pub(super) start: u64,
    /// Address after the last.
    pub(super) end: u64,
    /// When it was mapped, ns; 0 if it was before the recording.
    pub(super) since: u64,
}

impl MappedFile {
    /// A file that was not read yet.
    pub(super) fn new(path: &[u8], identity: MmapFile, room: &Rc<DescriptorRoom>) -> Self {
        Self {
            path: path.into(),
            identity,
            open: None,
            tables: OnceCell::new(),
            original: OnceCell::new(),
            tries: Cell::new(0),
            next_try: Cell::new(None),
            elsewhere: OnceCell::new(),
            room: Rc::clone(room),
        }
    }

    /// The open file, if it was read and is not the one at its path.
    pub(super) fn elsewhere(&self) -> Option<&FileElsewhere> {
        self.elsewhere.get()
    }

    /// The code at a file offset.
    pub(super) fn code(&self, place: RecordedMapping, offset: u64) -> MappedCode<'_> {
        let is_memory = Mmap::is_memory(&self.path);
        if is_memory && self.has_no_file() {
            return MappedCode::Made;
        }
        match self.code_of_file(place, offset) {
            Some(code) => MappedCode::File(code),
            // Programs may be in such memory, too.
            None if is_memory && self.tables.get().is_none() => MappedCode::Made,
            None => MappedCode::Unknown,
        }
    }

    /// `None` if the file cannot be read or has nothing there.
    fn code_of_file(&self, place: RecordedMapping, offset: u64) -> Option<Code<'_>> {
        let read = match self.tables.get() {
            Some(read) => read,
            None => {
                let tries = self.tries.get();
                let is_early = |next| Instant::now() < next;
                if tries >= TRIES || self.next_try.get().is_some_and(is_early) {
                    return None;
                }
                let read = self.read(place, read);
                self.tries.set(tries + 1);
                let pause = FIRST_RETRY * (1 << tries);
                self.next_try.set(Some(Instant::now() + pause));
                let read = read?;
                self.tables.get_or_init(|| read)
            }
        };
        Some(Code {
            tables: &read.tables,
            address: read.segments.address(offset)?,
        })
    }

    /// The error in the file as a whole; `None` if it has unwind tables.
    pub(super) fn wrong(&self) -> Option<ChainCut> {
        match self.tables.get() {
            None => Some(ChainCut::FileNotRead),
            Some(read) => read.tables.is_empty().then_some(ChainCut::NoTable),
        }
    }

    /// The function of the file of which its processes make copies.
    pub(super) fn original(
        &self,
        place: RecordedMapping,
        known: &CopiedCode,
    ) -> Option<CopiedOriginal> {
        let read = || self.read(place, |object| original(object, known));
        *self.original.get_or_init(read)
    }

    /// Size of the tables in memory, bytes.
    pub(super) fn size(&self) -> usize {
        self.tables.get().map_or(0, |read| read.tables.size())
    }

    /// Forgets the tables, which are read again when they are needed.
    pub(super) fn forget(&mut self) {
        self.tables.take();
        self.tries.set(0);
        self.next_try.set(None);
    }

    /// Reads the file that the process has mapped, which may be deleted or in another mount namespace; or, of a process that has ended, the file
    /// at the path, if it is the same.
    fn read<T>(
        &self,
        place: RecordedMapping,
        read: impl FnOnce(&ObjectFile) -> Option<T>,
    ) -> Option<T> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        if let Some(open) = &self.open {
            self.keep(open, path, place);
            return read(open);
        }
        let object = self.opened(place)?;
        self.keep(&object, path, place);
        read(&object)
    }

    /// Opens it by a mapping of it.
    fn opened(&self, place: RecordedMapping) -> Option<ObjectFile> {
        let device = match self.identity {
            MmapFile::Inode { major, minor, .. } => DeviceNumber { major, minor },
            _ => DeviceNumber::default(),
        };
        let reader = Reader {
            device,
            ..Reader::of_process(place.pid, Patience::Short)
        };
        opened(&self.path, self.identity, place, reader)
    }

    /// Whether a file that was opened by another path is this one.
    pub(super) fn is_of(&self, object: &ObjectFile) -> bool {
        let is_there = |major, minor| object.id().device == libc::makedev(major, minor);
        match self.identity {
            MmapFile::Inode { major, minor, .. } => {
                is_there(major, minor) && is_it(object, self.identity)
            }
            _ => is_it(object, self.identity),
        }
    }

    /// Keeps the file open if it is not the one at its path, for the names of its functions.
    fn keep(&self, object: &ObjectFile, path: &Path, place: RecordedMapping) {
        let reader = Reader::of_process(place.pid, Patience::Short);
        // One that a helper reads is not opened by its path when names are looked up, either.
        let is_local = object.local().is_some();
        let is_at_path = || is_local && file_id(path, reader) == Some(object.id());
        if self.elsewhere.get().is_some() || is_at_path() || self.room.take().is_none() {
            return;
        }
        self.elsewhere.get_or_init(|| FileElsewhere {
            path: path.to_owned(),
            build_id: object.build_id(),
            contents: Arc::clone(object.contents()),
        });
    }

    /// Whether the memory is that of no file at all. That of a memfd has one, which has no name.
    const fn has_no_file(&self) -> bool {
        matches!(self.identity, MmapFile::Inode { inode: 0, .. })
    }
}

fn is_it(object: &ObjectFile, identity: MmapFile) -> bool {
    match identity {
        MmapFile::BuildId(build_id) => object.build_id() == Some(build_id),
        MmapFile::Inode { inode, .. } => object.id().inode == inode,
        MmapFile::Unknown => false,
    }
}

/// Opens a file by a mapping of it.
fn opened(
    path: &[u8],
    identity: MmapFile,
    place: RecordedMapping,
    reader: Reader,
) -> Option<ObjectFile> {
    let RecordedMapping {
        pid, start, end, ..
    } = place;
    let path = Path::new(OsStr::from_bytes(path));
    let below = path.strip_prefix("/").ok()?;
    let process = live_directory(pid);
    let views = [
        process.join(format!("map_files/{start:x}-{end:x}")),
        process.join("root").join(below),
        path.to_owned(),
    ];
    // The process chose the path: what else it leads to is not opened.
    let may_be_it = |handle: &Handle| match identity {
        MmapFile::Inode { inode, .. } => handle.stat().id.inode == inode,
        _ => true,
    };
    views.iter().find_map(|view| {
        let handle = Handle::of_path(view, reader).ok().filter(may_be_it)?;
        let object = ObjectFile::from_handle(handle, view.clone()).ok()?;
        is_it(&object, identity).then(|| object.patiently())
    })
}

/// Reads the tables of a file.
fn read(object: &ObjectFile) -> Option<ReadTables> {
    let data = ReadCache::new(object.reader());
    let file = object::File::parse(&data).ok()?;
    Some(ReadTables {
        tables: UnwindTables::read(&file)?,
        segments: Segments::from_file(&file),
    })
}

/// The function of a file of which its processes make copies, by its symbols.
fn original(object: &ObjectFile, known: &CopiedCode) -> Option<CopiedOriginal> {
    /// More bytes than any has.
    const MAX_BYTES: u64 = 0x100;
    let data = ReadCache::new(object.reader());
    let file = object::File::parse(&data).ok()?;
    let mut symbols = file.dynamic_symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let which = CopiedOriginal::SYMBOLS
            .iter()
            .position(|known| *known == name)?;
        Some((which, symbol.address()))
    });
    let first = symbols.next()?;
    let second = symbols.next()?;
    let [(0, start), (1, end)] = [first.min(second), first.max(second)] else {
        return None;
    };
    let len = end.checked_sub(start).filter(|len| *len <= MAX_BYTES)?;
    let mut sections = file.sections();
    let code = sections.find_map(|section| section.data_range(start, len).ok().flatten())?;
    known.original(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stacks of a millisecond do not use up all tries.
    #[test]
    fn a_file_that_cannot_be_read_is_tried_later() {
        let room = Rc::new(DescriptorRoom::new());
        let mut file = MappedFile::new(b"/nowhere/at/all", MmapFile::Unknown, &room);
        let place = RecordedMapping {
            pid: -2,
            start: 0x1000,
            end: 0x2000,
            since: 0,
        };
        for _ in 0..20 {
            assert!(file.code_of_file(place, 0).is_none());
        }
        assert_eq!(file.tries.get(), 1);
        file.next_try.set(Some(Instant::now()));
        assert!(file.code_of_file(place, 0).is_none());
        assert_eq!(file.tries.get(), 2);
        assert!(file.next_try.get() > Some(Instant::now() + FIRST_RETRY));
        file.forget();
        assert_eq!((file.tries.get(), file.next_try.get()), (0, None));
    }
}
