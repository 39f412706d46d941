//! The files with the debugging information of a binary: the binary itself, a file with its build-id, and a file that several binaries
//! share.
//!
//! Separate files (`/usr/lib/debug/.build-id`, and those of dwz) are found by build-id or checksum. They are opened
//! with the same checks as programs, once for each attached file, and closed when the arguments have their names.
//! Nothing is attached to them.
//!
//! Split DWARF: the entries of a unit that are in a `.dwo` file, or in the package of a program's `.dwo` files (`.dwp`), of which the program
//! has a skeleton with the addresses.

use std::cell::{Cell, OnceCell};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{DwarfPackageSections, DwarfSections, Reader as _, RunTimeEndian, SectionId};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{Patience, Reader as FileReader};
use usdtrec_format::{
    BuildId, debug_file_by_build_id, debug_files_by_link, split_debug_files, split_debug_package,
};

use super::sections::{self, Room, Slice};

/// The files with the debugging information of a binary.
pub(super) struct Files {
    /// The binary.
    pub(super) binary: Arc<ObjectFile>,
    /// The separate file with the binary's build-id, if there is one.
    pub(super) separate: Option<ObjectFile>,
    /// The file that several binaries share (`dwz -m`).
    shared: Option<ObjectFile>,
    room: Room,
    unwind: OnceCell<Unwind>,
}

/// Sections with debugging information.
pub(super) type Sections = DwarfSections<Vec<u8>>;

/// Sections of a package of `.dwo` files.
pub(super) type PackageSections = DwarfPackageSections<Vec<u8>>;

/// Address and content of a section.
pub(super) type Table = (u64, Vec<u8>);

/// Unwind tables.
#[derive(Debug, Default)]
pub(super) struct Unwind {
    /// `.eh_frame`
    pub(super) eh_frame: Option<Table>,
    /// `.debug_frame`
    pub(super) debug_frame: Option<Table>,
}

impl Files {
    /// Finds and opens them; `None` if there is no debugging information.
    pub(super) fn open(binary: &Arc<ObjectFile>) -> Option<Self> {
        let room = Room::new();
        let separate = binary.build_id().and_then(|id| {
            let file = ObjectFile::open(&debug_file_by_build_id(id)).ok()?;
            (file.build_id() == Some(id)).then_some(file)
        });
        let separate = separate.or_else(|| linked(binary, &room));
        let shared = match &separate {
            _ if has_info(binary) => shared(binary, binary.path(), &room),
            Some(file) if has_info(file) => shared(file, file.path(), &room),
            _ => return None,
        };
        Some(Self {
            binary: Arc::clone(binary),
            separate,
            shared,
            room,
            unwind: OnceCell::new(),
        })
    }

    /// The sections, and those of the shared file.
    pub(super) fn sections(&self) -> Option<(Sections, Option<Sections>)> {
        let own = match &self.separate {
            Some(separate) if !has_info(&self.binary) => separate,
            _ => &*self.binary,
        };
        let shared = self.shared.as_ref();
        let own = load(own, &self.room)?;
        Some((own, shared.and_then(|file| load(file, &self.room))))
    }

    /// The package of `.dwo` files, which has the name of the binary, or of the separate file, with `.dwp`.
    pub(super) fn package(&self) -> Option<PackageSections> {
        let files = [Some(&*self.binary), self.separate.as_ref()];
        let files = files.into_iter().flatten();
        let packages: Vec<PathBuf> = files.map(|file| split_debug_package(file.path())).collect();
        let index = SectionId::DebugCuIndex.name();
        let file = first(&packages, |file| sections::has(file, index))?;
        PackageSections::load(|id| split_content(&file, id, &self.room)).ok()
    }

    /// The sections of the first of these files that has split units.
    pub(super) fn split(&self, candidates: &[PathBuf]) -> Option<Sections> {
        let info = SectionId::DebugInfo.dwo_name()?;
        let file = first(candidates, |file| sections::has(file, info))?;
        Sections::load(|id| split_content(&file, id, &self.room)).ok()
    }

    /// Length of the debugging information in the files, bytes.
    pub(super) fn length(&self) -> u64 {
        let files = [Some(&*self.binary), self.separate.as_ref()];
        let files = files.into_iter().chain([self.shared.as_ref()]).flatten();
        let lengths = files.map(|file| {
            let ids = [
                SectionId::DebugInfo,
                SectionId::DebugLine,
                SectionId::DebugStr,
            ];
            let sections = ids.into_iter().filter_map(|id| file.section(id.name()));
            sections.map(|section| section.size).sum::<u64>()
        });
        lengths.sum()
    }

    /// The byte order.
    pub(super) fn endian(&self) -> RunTimeEndian {
        endian(&self.binary)
    }

    /// The unwind tables of the first file that has each.
    pub(super) fn unwind(&self) -> &Unwind {
        self.unwind.get_or_init(|| {
            let files = [Some(&*self.binary), self.separate.as_ref()];
            let table = |name: &str| {
                files.into_iter().flatten().find_map(|file| {
                    let address = file.section(name).map_or(0, |section| section.address);
                    let content = sections::section(file, name, &self.room)?;
                    (!content.is_empty()).then_some((address, content))
                })
            };
            Unwind {
                eh_frame: table(".eh_frame"),
                debug_frame: table(".debug_frame"),
            }
        })
    }
}

fn has_info(file: &ObjectFile) -> bool {
    sections::has(file, SectionId::DebugInfo.name())
}

/// Reads the sections for finding variables and their types.
fn load(file: &ObjectFile, room: &Room) -> Option<Sections> {
    if !has_info(file) {
        return None;
    }
    let load = |id: SectionId| {
        let unused = matches!(
            id,
            SectionId::DebugMacro | SectionId::DebugMacinfo | SectionId::DebugAranges
        );
        match unused {
            true => Ok(Vec::new()),
            false => content(file, id.name(), room),
        }
    };
    DwarfSections::load(load).ok()
}

/// The content of a section, which may be missing. If it exists and cannot be read, the debugging information is not used.
fn content(file: &ObjectFile, name: &str, room: &Room) -> Result<Vec<u8>, gimli::Error> {
    match sections::section(file, name, room) {
        None if sections::has(file, name) => Err(gimli::Error::Io),
        content => Ok(content.unwrap_or_default()),
    }
}

/// The same of a section of split units.
fn split_content(file: &ObjectFile, id: SectionId, room: &Room) -> Result<Vec<u8>, gimli::Error> {
    id.dwo_name()
        .map_or(Ok(Vec::new()), |name| content(file, name, room))
}

/// The separate file that a binary names in `.gnu_debuglink`: it has the binary's build-id, or if one has none, the checksum that the binary says.
fn linked(binary: &ObjectFile, room: &Room) -> Option<ObjectFile> {
    let link = sections::section(binary, ".gnu_debuglink", room)?;
    let end = link.iter().position(|byte| *byte == 0)?;
    let name = link.get(..end)?;
    let checksum = *link
        .get((end + 1).next_multiple_of(4)..)?
        .first_chunk::<4>()?;
    let checksum = match endian(binary) {
        RunTimeEndian::Big => u32::from_be_bytes(checksum),
        RunTimeEndian::Little => u32::from_le_bytes(checksum),
    };
    let candidates = debug_files_by_link(binary.path(), name);
    first(&candidates, |file| {
        let is_it = match (binary.build_id(), file.build_id()) {
            (Some(id), Some(found)) => id == found,
            _ => checksum_of(file) == Some(checksum),
        };
        is_it && has_info(file)
    })
}

/// CRC-32 (IEEE) of a whole file; `None` if it is too long to be read for that.
fn checksum_of(file: &ObjectFile) -> Option<u32> {
    const MAX_BYTES: u64 = 1 << 30;
    (file.len() <= MAX_BYTES).then_some(())?;
    let mut hasher = crc32fast::Hasher::new();
    let mut reader = file.reader();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer).ok()? {
            0 => return Some(hasher.finalize()),
            read => hasher.update(buffer.get(..read)?),
        }
    }
}

fn endian(file: &ObjectFile) -> RunTimeEndian {
    if file.is_big_endian() {
        RunTimeEndian::Big
    } else {
        RunTimeEndian::Little
    }
}

/// The shared file that a file names, if its build-id or checksum matches.
fn shared(file: &ObjectFile, path: &Path, room: &Room) -> Option<ObjectFile> {
    if let Some(link) = sections::section(file, ".gnu_debugaltlink", room) {
        let end = link.iter().position(|byte| *byte == 0)?;
        let (name, id) = (link.get(..end)?, BuildId::new(link.get(end + 1..)?).ok()?);
        let mut candidates = beside(path, name)?;
        candidates.push(debug_file_by_build_id(id));
        return first(&candidates, |file| file.build_id() == Some(id));
    }
    let (name, checksum) = supplementary(file, room)?;
    first(&beside(path, &name)?, |file| {
        supplementary(file, room).is_some_and(|(_, found)| found == checksum)
    })
}

/// The paths that a name in a file may refer to.
fn beside(path: &Path, name: &[u8]) -> Option<Vec<PathBuf>> {
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    Some(vec![path.parent()?.join(name)])
}

fn first(candidates: &[PathBuf], fits: impl Fn(&ObjectFile) -> bool) -> Option<ObjectFile> {
    let mut files = candidates.iter();
    // A file that anybody may have written names them.
    let reader = FileReader::of_unknown(Patience::Usual);
    let open = |path: &PathBuf| ObjectFile::open_foreign(path, reader).ok();
    files.find_map(|path| open(path).filter(|file| fits(file)))
}

/// The content of `.debug_sup` (DWARF 5, 7.3.6): the name of the shared file, which is empty in that file itself, and its checksum.
fn supplementary(file: &ObjectFile, room: &Room) -> Option<(Vec<u8>, Vec<u8>)> {
    let section = sections::section(file, ".debug_sup", room)?;
    let mut reader = Slice::new(&section, endian(file));
    let (_version, _is_shared) = (reader.read_u16().ok()?, reader.read_u8().ok()?);
    let name = reader.read_null_terminated_slice().ok()?;
    let length = usize::try_from(reader.read_uleb128().ok()?).ok()?;
    let checksum = reader.split(length).ok()?;
    Some((name.slice().to_vec(), checksum.slice().to_vec()))
}

/// Maximum number of `.dwo` files that are opened for a program.
const MAX_FILES: usize = 256;

/// The files with split units of a program, each opened when it is needed.
pub(super) struct SplitFiles<'f> {
    files: &'f Files,
    package: OnceCell<Option<PackageSections>>,
    loaded: Chain<Sections>,
    opened: Cell<usize>,
}

impl<'f> SplitFiles<'f> {
    pub(super) fn new(files: &'f Files) -> Self {
        Self {
            files,
            package: OnceCell::new(),
            loaded: Chain::default(),
            opened: Cell::new(0),
        }
    }

    /// The package; `None` if there is none.
    pub(super) fn package(&self) -> Option<&PackageSections> {
        let package = self.package.get_or_init(|| self.files.package());
        package.as_ref()
    }

    /// The sections of a `.dwo` file with the name that a skeleton has, compiled in `directory`.
    pub(super) fn file(&self, name: &[u8], directory: &[u8]) -> Option<&Sections> {
        self.opened.set(self.opened.get() + 1);
        if self.opened.get() > MAX_FILES {
            return None;
        }
        let candidates = split_debug_files(self.files.binary.path(), name, directory);
        let sections = self.files.split(&candidates)?;
        Some(self.loaded.push(sections))
    }
}

/// Values that live as long as the chain.
pub(super) struct Chain<T>(OnceCell<Box<Link<T>>>);

struct Link<T> {
    value: T,
    next: Chain<T>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> Chain<T> {
    /// Adds a value.
    pub(super) fn push(&self, value: T) -> &T {
        let mut end = self;
        while let Some(link) = end.0.get() {
            end = &link.next;
        }
        let next = Self::default();
        &end.0.get_or_init(|| Box::new(Link { value, next })).value
    }

    /// The first value that fits.
    pub(super) fn find(&self, fits: impl Fn(&T) -> bool) -> Option<&T> {
        let mut at = self.0.get();
        while let Some(link) = at {
            if fits(&link.value) {
                return Some(&link.value);
            }
            at = link.next.0.get();
        }
        None
    }
}
