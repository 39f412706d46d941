//! Sections of debugging information, decompressed, within limits: what a file claims costs nothing.

use std::sync::Arc;

use gimli::{DwarfPackageSections, DwarfSections, EndianReader, RunTimeEndian, SectionId};
use object::read::{CompressedData, CompressionFormat, Object, ObjectSection};

use crate::symbols::image::{Binary, ParsedBinary};

/// What the readers of DWARF read from.
pub(super) type Bytes = EndianReader<RunTimeEndian, Arc<[u8]>>;

/// Sections with debugging information.
pub(super) type Sections = DwarfSections<Bytes>;

/// Maximum length of the debugging information of a file and of the one that it shares with others, decompressed, bytes.
pub const LIMIT: u64 = 512 << 20;
/// Maximum compression ratio. Compilers' output has up to 12.
const MAX_RATIO: u64 = 64;

/// The sections in which inlined calls, their names and lines are.
const READ: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// The number of bytes of debugging information that may still be read.
#[derive(Debug)]
pub(super) struct Room {
    bytes: u64,
    /// Whether there were more.
    is_exceeded: bool,
}

impl Room {
    pub(super) const fn new() -> Self {
        Self {
            bytes: LIMIT,
            is_exceeded: false,
        }
    }

    fn take(&mut self, bytes: u64) -> Option<usize> {
        let Some(left) = self.bytes.checked_sub(bytes) else {
            self.is_exceeded = true;
            return None;
        };
        self.bytes = left;
        usize::try_from(bytes).ok()
    }

    /// Why sections could not be read.
    pub(super) const fn reason(&self) -> NoInlineInfo {
        match self.is_exceeded {
            true => NoInlineInfo::TooLong,
            false => NoInlineInfo::Absent,
        }
    }
}

/// Why nothing is known of the inlined functions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoInlineInfo {
    /// It has no debugging information, or that cannot be read.
    Absent,
    /// Its debugging information is longer than is read.
    TooLong,
}

/// The section, if it is one that is read.
fn read(id: SectionId) -> Option<SectionId> {
    READ.contains(&id).then_some(id)
}

/// The content of the sections of a file; `None` if one of them cannot be read, or all are too long.
pub(super) fn load(binary: &Binary, file: &ParsedBinary<'_>, room: &mut Room) -> Option<Sections> {
    let load = |id: SectionId| section(binary, file, read(id).map(|id| id.name()), room);
    DwarfSections::load(load).ok()
}

/// The same of a `.dwo` file; `None` also if it has no split units.
pub(super) fn load_split(
    binary: &Binary,
    file: &ParsedBinary<'_>,
    room: &mut Room,
) -> Option<Sections> {
    file.section_by_name(SectionId::DebugInfo.dwo_name()?)?;
    let load = |id: SectionId| section(binary, file, read(id).and_then(|id| id.dwo_name()), room);
    DwarfSections::load(load).ok()
}

/// The sections of a package of `.dwo` files.
pub(super) fn package_sections(
    binary: &Binary,
    file: &ParsedBinary<'_>,
    room: &mut Room,
) -> Option<DwarfPackageSections<Bytes>> {
    // The index has the parts of all sections, also of those that are not needed here.
    let load = |id: SectionId| section(binary, file, id.dwo_name(), room);
    DwarfPackageSections::load(load).ok()
}

/// A section, which may be missing.
fn section(
    binary: &Binary,
    file: &ParsedBinary<'_>,
    name: Option<&str>,
    room: &mut Room,
) -> gimli::Result<Bytes> {
    let found = name.and_then(|name| file.section_by_name(name));
    let bytes = match found {
        Some(section) => content(binary, &section, room).ok_or(gimli::Error::Io)?,
        None => Vec::new(),
    };
    Ok(EndianReader::new(Arc::from(bytes), endian(file)))
}

/// The byte order of a file.
pub(super) fn endian(file: &ParsedBinary<'_>) -> RunTimeEndian {
    match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    }
}

fn content<'f>(
    binary: &Binary,
    section: &impl ObjectSection<'f>,
    room: &mut Room,
) -> Option<Vec<u8>> {
    let range = section.compressed_file_range().ok()?;
    if range.format == CompressionFormat::None {
        let len = room.take(range.uncompressed_size)?;
        return binary.bytes(range.offset, len);
    }
    if range.uncompressed_size > range.compressed_size.saturating_mul(MAX_RATIO) {
        return None;
    }
    room.take(range.uncompressed_size)?;
    let len = usize::try_from(range.compressed_size).ok()?;
    let data = binary.bytes(range.offset, len)?;
    let compressed = CompressedData {
        format: range.format,
        data: &data,
        uncompressed_size: range.uncompressed_size,
    };
    Some(compressed.decompress().ok()?.into_owned())
}
