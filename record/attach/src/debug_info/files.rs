//! The files with the debugging information of a binary: the binary itself, and a file with its build-id.
//!
//! Separate files (`/usr/lib/debug/.build-id`) are found by build-id or checksum. They are opened with the same checks
//! as programs, once for each attached file, and closed when the arguments have their names. Nothing is attached to them.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use gimli::{RunTimeEndian, SectionId};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::served::{Patience, Reader as FileReader};
use usdtrec_dwarf::{
    DebugLink, DwarfInfo, DwarfNeed, DwarfSource, Room, SectionFile, SectionPlace, has_section,
    section_content,
};
use usdtrec_format::{BuildId, debug_file_by_build_id, debug_files_by_link};

/// Length that is allowed for any section, bytes. Some file systems do not report the allocated size of a small file.
const MIN_CHECKED_BYTES: u64 = 16 << 20;
/// Maximum ratio of the length of a section to the size that is allocated for its file on disk.
const MAX_RATIO: u64 = 64;

/// An open file that sections are read from.
pub(super) struct OpenedFile(pub(super) Arc<ObjectFile>);

/// The files with the debugging information of a binary.
pub(super) struct Files {
    binary: OpenedFile,
    /// The separate file with the binary's build-id, if there is one.
    pub(super) separate: Option<OpenedFile>,
    unwind: OnceCell<Unwind>,
}

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

impl SectionFile for OpenedFile {
    fn length(&self) -> u64 {
        self.0.len()
    }

    fn build_id(&self) -> Option<BuildId> {
        self.0.build_id()
    }

    fn is_big_endian(&self) -> bool {
        self.0.is_big_endian()
    }

    fn is_class64(&self) -> bool {
        self.0.is_class64()
    }

    fn section(&self, name: &str) -> Option<SectionPlace> {
        let section = self.0.section(name).filter(|section| !section.no_bits)?;
        Some(SectionPlace {
            address: section.address,
            offset: section.offset,
            size: section.size,
            is_compressed: section.compressed,
        })
    }

    /// The size is compared with the allocated size, because a sparse file can claim any length.
    fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let most = self.0.allocated().saturating_mul(MAX_RATIO);
        let is_there = at.checked_add(len as u64)? <= self.0.len();
        (is_there && len as u64 <= most.max(MIN_CHECKED_BYTES)).then_some(())?;
        let bytes = self.0.bytes_at(at, len).ok()?;
        (bytes.len() == len).then_some(bytes)
    }
}

impl OpenedFile {
    /// Opens a file at a path that a file names which anybody may have written.
    fn open_named(path: &Path) -> Option<Self> {
        let reader = FileReader::of_unknown(Patience::Usual);
        let file = ObjectFile::open_foreign(path, reader).ok()?;
        Some(Self(Arc::new(file)))
    }

    fn has_info(&self) -> bool {
        has_section(self, SectionId::DebugInfo.name())
    }
}

impl Files {
    /// Finds and opens them; `None` if there is no debugging information.
    pub(super) fn open(binary: &Arc<ObjectFile>) -> Option<Self> {
        let separate = binary.build_id().and_then(|id| {
            let file = ObjectFile::open(&debug_file_by_build_id(id)).ok()?;
            (file.build_id() == Some(id)).then(|| OpenedFile(Arc::new(file)))
        });
        let binary = OpenedFile(Arc::clone(binary));
        let files = Self {
            separate: separate.or_else(|| linked(&binary)),
            binary,
            unwind: OnceCell::new(),
        };
        let has_info = files.all().any(OpenedFile::has_info);
        has_info.then_some(files)
    }

    /// The binary and the separate file.
    fn all(&self) -> impl Iterator<Item = &OpenedFile> {
        [Some(&self.binary), self.separate.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Reads the debugging information.
    pub(super) fn read(&self, need: DwarfNeed) -> Option<DwarfInfo> {
        let file = self.all().find(|file| file.has_info())?;
        let source = DwarfSource {
            file,
            path: file.0.path(),
            programs: self.all().map(|file| file.0.path().to_owned()).collect(),
            open: |path| Some(Box::new(OpenedFile::open_named(path)?)),
        };
        DwarfInfo::read(source, need).ok()
    }

    /// Length of the debugging information in the files, bytes.
    pub(super) fn length(&self) -> u64 {
        let ids = [
            SectionId::DebugInfo,
            SectionId::DebugLine,
            SectionId::DebugStr,
        ];
        let sections = self
            .all()
            .flat_map(|file| ids.iter().filter_map(|id| file.section(id.name())));
        sections.map(|section| section.size).sum()
    }

    /// The byte order.
    pub(super) fn endian(&self) -> RunTimeEndian {
        match self.binary.is_big_endian() {
            true => RunTimeEndian::Big,
            false => RunTimeEndian::Little,
        }
    }

    /// The unwind tables of the first file that has each.
    pub(super) fn unwind(&self) -> &Unwind {
        self.unwind.get_or_init(|| {
            let mut room = Room::default();
            let mut table = |name: &str| {
                self.all().find_map(|file| {
                    let content = section_content(file, name, &mut room)?;
                    let address = file.section(name).map_or(0, |section| section.address);
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

/// The separate file that a binary names in `.gnu_debuglink`.
fn linked(binary: &OpenedFile) -> Option<OpenedFile> {
    let link = DebugLink::from_file(binary)?;
    let candidates = debug_files_by_link(binary.0.path(), &link.name);
    let mut files = candidates
        .iter()
        .filter_map(|path| OpenedFile::open_named(path));
    files.find(|file| link.is_of(binary.build_id(), file) && file.has_info())
}
