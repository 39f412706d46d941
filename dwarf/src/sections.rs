//! Sections of debugging information, decompressed, within limits: what a file claims costs nothing.

use std::path::Path;
use std::sync::Arc;

use gimli::{
    AttributeValue, Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, EndianReader,
    EndianSlice, Reader, RunTimeEndian, Section, SectionId, Unit,
};
use object::read::{CompressedData, CompressionFormat};
use usdtrec_format::BuildId;

/// What the readers of DWARF read from.
pub type Bytes = EndianReader<RunTimeEndian, Arc<[u8]>>;

/// Sections with debugging information.
pub(crate) type Sections = DwarfSections<Bytes>;

/// Maximum length of the debugging information of a file and of those that belong to it, decompressed, bytes.
pub const LIMIT: u64 = 512 << 20;
/// Maximum compression ratio. Compilers' output has up to 12.
const MAX_RATIO: u64 = 64;
/// Longer names and paths are not read, bytes.
const MAX_STRING_BYTES: usize = 64 << 10;

/// An ELF file that sections are read from.
pub trait SectionFile {
    /// Length of the file, bytes.
    fn length(&self) -> u64;
    /// GNU build-id.
    fn build_id(&self) -> Option<BuildId>;
    /// Whether the file is big-endian.
    fn is_big_endian(&self) -> bool;
    /// Whether the file has ELF class 64.
    fn is_class64(&self) -> bool;
    /// The first section of this name.
    fn section(&self, name: &str) -> Option<SectionPlace>;
    /// `len` bytes at a file offset; `None` if the file does not have them.
    fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>>;
}

/// Opens a file at a path that another file names, so that anything may be there.
pub type SectionOpener = fn(&Path) -> Option<Box<dyn SectionFile>>;

/// A section in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionPlace {
    /// Link-time address.
    pub address: u64,
    /// File offset of the content.
    pub offset: u64,
    /// Size of the content in the file, bytes.
    pub size: u64,
    /// Whether the content is compressed (`SHF_COMPRESSED`).
    pub is_compressed: bool,
}

/// What debugging information is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DwarfNeed {
    /// Inlined calls, their names, and lines.
    CallsAndLines,
    /// Variables and their types as well.
    Variables,
}

/// The number of bytes of debugging information that may still be read.
#[derive(Debug)]
pub struct Room {
    bytes: u64,
    /// Whether there were more.
    is_exceeded: bool,
}

/// Why a file has no debugging information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDwarf {
    /// There is none, or it cannot be read.
    Absent,
    /// It is longer than is read.
    TooLong,
}

impl DwarfNeed {
    const fn reads(self, id: SectionId) -> bool {
        match id {
            SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
            | SectionId::DebugTypes => true,
            SectionId::DebugLoc | SectionId::DebugLocLists => matches!(self, Self::Variables),
            _ => false,
        }
    }
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: LIMIT,
            is_exceeded: false,
        }
    }
}

impl Room {
    fn check(&mut self, bytes: u64) -> Option<usize> {
        self.is_exceeded |= bytes > self.bytes;
        let fits = bytes <= self.bytes;
        fits.then(|| usize::try_from(bytes).ok())?
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.check(bytes)?;
        self.bytes -= bytes;
        Some(())
    }

    /// Why sections could not be read.
    pub(crate) const fn reason(&self) -> NoDwarf {
        match self.is_exceeded {
            true => NoDwarf::TooLong,
            false => NoDwarf::Absent,
        }
    }
}

/// The content of the sections of a file; `None` if one of them cannot be read, or all are too long.
pub(crate) fn load(file: &dyn SectionFile, need: DwarfNeed, room: &mut Room) -> Option<Sections> {
    let load = |id: SectionId| optional(file, need.reads(id).then(|| id.name()), room);
    DwarfSections::load(load).ok()
}

/// The same of a `.dwo` file; `None` also if it has no split units.
pub(crate) fn load_split(
    file: &dyn SectionFile,
    need: DwarfNeed,
    room: &mut Room,
) -> Option<Sections> {
    has_section(file, SectionId::DebugInfo.dwo_name()?).then_some(())?;
    let name = |id: SectionId| id.dwo_name().filter(|_| need.reads(id));
    DwarfSections::load(|id| optional(file, name(id), room)).ok()
}

/// The same of a package of `.dwo` files.
pub(crate) fn load_package(file: &dyn SectionFile, room: &mut Room) -> Option<DwarfPackage<Bytes>> {
    has_section(file, SectionId::DebugCuIndex.name()).then_some(())?;
    // The index has the parts of all sections, also of those that are not needed here.
    let sections = DwarfPackageSections::load(|id| optional(file, id.dwo_name(), room)).ok()?;
    let empty = EndianReader::new(Arc::from([]), endian(file));
    sections.borrow(Clone::clone, empty).ok()
}

/// A section, which may be missing. If it exists and cannot be read, the debugging information is not used.
fn optional(file: &dyn SectionFile, name: Option<&str>, room: &mut Room) -> gimli::Result<Bytes> {
    let bytes = match name.filter(|name| has_section(file, name)) {
        Some(name) => section_content(file, name, room).ok_or(gimli::Error::Io)?,
        None => Vec::new(),
    };
    Ok(EndianReader::new(Arc::from(bytes), endian(file)))
}

/// Whether a file has a section, compressed or not.
pub fn has_section(file: &dyn SectionFile, name: &str) -> bool {
    file.section(name).is_some() || old_section(file, name).is_some()
}

/// The section in the form before `SHF_COMPRESSED`.
fn old_section(file: &dyn SectionFile, name: &str) -> Option<SectionPlace> {
    file.section(&format!(".z{}", name.strip_prefix('.')?))
}

/// The byte order of a file.
pub(crate) fn endian(file: &dyn SectionFile) -> RunTimeEndian {
    match file.is_big_endian() {
        true => RunTimeEndian::Big,
        false => RunTimeEndian::Little,
    }
}

/// The content of a section, decompressed; `None` if the section is missing, or cannot be read within the limits.
pub fn section_content(file: &dyn SectionFile, name: &str, room: &mut Room) -> Option<Vec<u8>> {
    let raw = |place: &SectionPlace, room: &mut Room| {
        let len = room.check(place.size)?;
        file.bytes(place.offset, len)
    };
    let Some(place) = file.section(name) else {
        // `ZLIB` and the length, most significant byte first.
        let raw = raw(&old_section(file, name)?, room)?;
        let (head, data) = raw.split_at_checked(12)?;
        let size = u64::from_be_bytes(*head.strip_prefix(b"ZLIB")?.first_chunk()?);
        return decompressed(CompressionFormat::Zlib, size, data, room);
    };
    if !place.is_compressed {
        let content = raw(&place, room)?;
        room.take(place.size)?;
        return Some(content);
    }
    // ch_type; (of class 64: reserved;) ch_size; ch_addralign (ELF gABI, "Section Compression")
    let raw = raw(&place, room)?;
    let mut header = EndianSlice::new(&raw, endian(file));
    let format = match header.read_u32().ok()? {
        1 => CompressionFormat::Zlib,
        2 => CompressionFormat::Zstandard,
        _ => return None,
    };
    let word = if file.is_class64() { 8 } else { 4 };
    header.skip(word - 4).ok()?;
    let size = header.read_uint(word).ok()?;
    header.skip(word).ok()?;
    decompressed(format, size, header.slice(), room)
}

fn decompressed(
    format: CompressionFormat,
    size: u64,
    data: &[u8],
    room: &mut Room,
) -> Option<Vec<u8>> {
    if size > (data.len() as u64).saturating_mul(MAX_RATIO) {
        return None;
    }
    room.take(size)?;
    let compressed = CompressedData {
        format,
        data,
        uncompressed_size: size,
    };
    Some(compressed.decompress().ok()?.into_owned())
}

/// The text of an attribute, as UTF-8: other bytes are replaced. `None` if it is too long or cannot be read.
pub(crate) fn text(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    value: AttributeValue<Bytes>,
) -> Option<String> {
    utf8(&raw_text(dwarf, unit, value)?)
}

/// The same as bytes.
pub(crate) fn raw_text(
    dwarf: &Dwarf<Bytes>,
    unit: &Unit<Bytes>,
    value: AttributeValue<Bytes>,
) -> Option<Bytes> {
    match value {
        AttributeValue::String(string) => (string.len() <= MAX_STRING_BYTES).then_some(string),
        AttributeValue::DebugStrRef(at) => string(dwarf.debug_str.reader(), at.0),
        AttributeValue::DebugStrRefSup(at) => string(dwarf.sup()?.debug_str.reader(), at.0),
        AttributeValue::DebugLineStrRef(at) => string(dwarf.debug_line_str.reader(), at.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let at = dwarf.string_offset(unit, index).ok()?;
            string(dwarf.debug_str.reader(), at.0)
        }
        _ => None,
    }
}

/// The text at an offset of a section. A search for its end beyond the limit would take time in proportion to the section.
fn string(section: &Bytes, at: usize) -> Option<Bytes> {
    let mut section = section.clone();
    section.skip(at).ok()?;
    let most = section.len().min(MAX_STRING_BYTES);
    section.truncate(most).ok()?;
    section.read_null_terminated_slice().ok()
}

/// A text as UTF-8; other bytes are replaced.
pub(crate) fn utf8(text: &Bytes) -> Option<String> {
    Some(String::from_utf8_lossy(&text.to_slice().ok()?).into_owned())
}
