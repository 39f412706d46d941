//! Files that an ELF file names: the separate file with its debugging information, and the file that several programs share.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gimli::{EndianSlice, Reader};
use usdtrec_format::{BuildId, debug_file_by_build_id};

use crate::sections::{SectionFile, SectionOpener, endian};

/// Maximum length of a section that names a file, bytes: a path (`PATH_MAX`) and a build-id or a checksum.
const MAX_LINK_BYTES: u64 = 4096 + 64;
/// Maximum length of a file that is read for its checksum, bytes.
const MAX_CHECKSUM_BYTES: u64 = 1 << 30;
/// Bytes that are read at once for a checksum.
const CHECKSUM_PIECE: u64 = 1 << 20;

/// What a program says of its separate file (`.gnu_debuglink`).
#[derive(Debug)]
pub struct DebugLink {
    /// Name of the file, without a directory.
    pub name: Vec<u8>,
    /// CRC-32 (IEEE) of the whole file.
    pub checksum: u32,
}

impl DebugLink {
    /// What a file's section says.
    #[must_use]
    pub fn from_file(file: &dyn SectionFile) -> Option<Self> {
        let link = link_section(file, ".gnu_debuglink")?;
        let end = link.iter().position(|byte| *byte == 0)?;
        let checksum = link.get((end + 1).next_multiple_of(4)..)?;
        Some(Self {
            name: link.get(..end)?.to_vec(),
            checksum: EndianSlice::new(checksum, endian(file)).read_u32().ok()?,
        })
    }

    /// Whether a file is the one that a program with this build-id names: it has the build-id, or if one of them has none, the checksum.
    #[must_use]
    pub fn is_of(&self, program: Option<BuildId>, file: &dyn SectionFile) -> bool {
        match (program, file.build_id()) {
            (Some(id), Some(found)) => id == found,
            _ => checksum(file) == Some(self.checksum),
        }
    }
}

/// CRC-32 (IEEE) of a whole file; `None` if it cannot be read, or is too long to be read for that.
fn checksum(file: &dyn SectionFile) -> Option<u32> {
    let length = file.length();
    (length <= MAX_CHECKSUM_BYTES).then_some(())?;
    let mut sum = crc32fast::Hasher::new();
    let mut at = 0;
    while at < length {
        let piece = (length - at).min(CHECKSUM_PIECE);
        sum.update(&file.bytes(at, piece as usize)?);
        at += piece;
    }
    Some(sum.finalize())
}

/// The content of a section that names a file.
fn link_section(file: &dyn SectionFile, name: &str) -> Option<Vec<u8>> {
    let place = file.section(name)?;
    let is_read = place.size <= MAX_LINK_BYTES && !place.is_compressed;
    is_read.then(|| file.bytes(place.offset, place.size as usize))?
}

/// The shared file that the file at a path names (`dwz -m`), if its build-id or checksum matches.
pub(crate) fn shared(
    file: &dyn SectionFile,
    path: &Path,
    open: SectionOpener,
) -> Option<Box<dyn SectionFile>> {
    let beside = |name: &[u8]| Some(path.parent()?.join(OsStr::from_bytes(name)));
    if let Some(link) = link_section(file, ".gnu_debugaltlink") {
        let end = link.iter().position(|byte| *byte == 0)?;
        let id = BuildId::new(link.get(end + 1..)?).ok()?;
        let paths = [beside(link.get(..end)?)?, debug_file_by_build_id(id)];
        let mut files = paths.iter().filter_map(|path| open(path));
        return files.find(|file| file.build_id() == Some(id));
    }
    let (name, checksum) = supplementary(file)?;
    let found = open(&beside(&name)?)?;
    let is_it = supplementary(&*found).is_some_and(|(_, found)| found == checksum);
    is_it.then_some(found)
}

/// The content of `.debug_sup` (DWARF 5, 7.3.6): the name of the shared file, which is empty in that file itself, and its checksum.
fn supplementary(file: &dyn SectionFile) -> Option<(Vec<u8>, Vec<u8>)> {
    let section = link_section(file, ".debug_sup")?;
    let mut reader = EndianSlice::new(&section, endian(file));
    let (_version, _is_shared) = (reader.read_u16().ok()?, reader.read_u8().ok()?);
    let name = reader.read_null_terminated_slice().ok()?;
    let length = usize::try_from(reader.read_uleb128().ok()?).ok()?;
    let checksum = reader.split(length).ok()?;
    Some((name.slice().to_vec(), checksum.slice().to_vec()))
}
