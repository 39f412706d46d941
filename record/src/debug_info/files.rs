//! Where a binary's debugging information is: in itself, in a file with its build-id, and in one that several share.

use std::borrow::Cow;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gimli::{DwarfSections, Reader, RunTimeEndian, SectionId};
use memmap2::Mmap;
use object::{Object, ObjectSection};
use usdtrec_format::BuildId;

use super::Slice;
use crate::select::map;

/// Where distributions put debugging information that is not in the binary itself, by build-id.
const SEPARATE: &str = "/usr/lib/debug/.build-id";

/// The files that a binary's debugging information is in.
pub(super) struct Files {
    /// The binary.
    pub(super) binary: Mmap,
    /// The separate file with the binary's build-id, if there is one.
    pub(super) separate: Option<Mmap>,
    /// What several binaries have in common (`dwz -m`).
    shared: Option<Mmap>,
}

/// Sections with debugging information.
pub(super) type Sections<'a> = DwarfSections<Cow<'a, [u8]>>;

impl Files {
    /// Finds and opens them; `None` if there is no debugging information.
    pub(super) fn open(path: &Path, build_id: Option<&BuildId>) -> Option<Self> {
        let binary = map(&File::open(path).ok()?)?;
        let separate = build_id.and_then(|id| {
            let path = by_build_id(id.as_bytes());
            let file = map(&File::open(&path).ok()?)?;
            same_build(&file, id.as_bytes()).then_some((path, file))
        });
        let shared = match &separate {
            _ if has_info(&binary) => shared(&binary, path),
            Some((path, file)) if has_info(file) => shared(file, path),
            _ => return None,
        };
        Some(Self {
            binary,
            separate: separate.map(|(_, file)| file),
            shared,
        })
    }

    /// The sections, and those of the shared file.
    pub(super) fn sections(&self) -> Option<(Sections<'_>, Option<Sections<'_>>)> {
        let own = match &self.separate {
            Some(separate) if !has_info(&self.binary) => separate,
            _ => &self.binary,
        };
        let shared = self.shared.as_ref();
        Some((sections(own)?, shared.and_then(|file| sections(file))))
    }

    /// The byte order.
    pub(super) fn endian(&self) -> RunTimeEndian {
        endian(&self.binary)
    }
}

/// The file for a build-id.
fn by_build_id(id: &[u8]) -> PathBuf {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at_checked(2).unwrap_or((&hex, ""));
    Path::new(SEPARATE)
        .join(first)
        .join(format!("{rest}.debug"))
}

fn same_build(content: &[u8], build_id: &[u8]) -> bool {
    let file = object::File::parse(content);
    file.is_ok_and(|file| matches!(file.build_id(), Ok(Some(found)) if found == build_id))
}

fn has_info(content: &[u8]) -> bool {
    let file = object::File::parse(content);
    file.is_ok_and(|file| file.section_by_name(SectionId::DebugInfo.name()).is_some())
}

fn sections(content: &[u8]) -> Option<Sections<'_>> {
    let file = object::File::parse(content).ok()?;
    file.section_by_name(SectionId::DebugInfo.name())?;
    let load = |id: SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.map(|section| section.uncompressed_data());
        data.unwrap_or(Ok(Cow::default()))
    };
    DwarfSections::load(load).ok()
}

fn endian(content: &[u8]) -> RunTimeEndian {
    let little = object::File::parse(content).is_ok_and(|file| file.is_little_endian());
    if little {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    }
}

/// The shared file that the file at `path` names, if it is the one that is meant.
fn shared(content: &[u8], path: &Path) -> Option<Mmap> {
    let file = object::File::parse(content).ok()?;
    if let Ok(Some((name, id))) = file.gnu_debugaltlink() {
        let mut candidates = beside(path, name);
        candidates.push(by_build_id(id));
        return first(&candidates, |content| same_build(content, id));
    }
    let (name, checksum) = supplementary(content)?;
    first(&beside(path, &name), |content| {
        supplementary(content).is_some_and(|(_, found)| found == checksum)
    })
}

/// The paths that a name in a file may mean.
fn beside(path: &Path, name: &[u8]) -> Vec<PathBuf> {
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    let real = fs::canonicalize(path).ok();
    let directories = [Some(path), real.as_deref()].into_iter().flatten();
    // An absolute name stays what it is.
    let joined = directories.filter_map(|path| Some(path.parent()?.join(name)));
    joined.collect()
}

fn first(candidates: &[PathBuf], fits: impl Fn(&[u8]) -> bool) -> Option<Mmap> {
    let mut files = candidates.iter();
    files.find_map(|path| {
        let regular = fs::metadata(path).is_ok_and(|it| it.is_file());
        let file = regular.then(|| File::open(path).ok()).flatten()?;
        map(&file).filter(|content| fits(content))
    })
}

/// What `.debug_sup` says (DWARF 5, 7.3.6): the name of the shared file, which is empty in that file itself, and the checksum of it.
fn supplementary(content: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let file = object::File::parse(content).ok()?;
    let section = file
        .section_by_name(".debug_sup")?
        .uncompressed_data()
        .ok()?;
    let mut reader = Slice::new(&section, endian(content));
    let (_version, _is_shared) = (reader.read_u16().ok()?, reader.read_u8().ok()?);
    let name = reader.read_null_terminated_slice().ok()?;
    let length = usize::try_from(reader.read_uleb128().ok()?).ok()?;
    let checksum = reader.split(length).ok()?;
    Some((name.slice().to_vec(), checksum.slice().to_vec()))
}
