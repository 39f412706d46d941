//! Sections of debugging information, decompressed, within bounds: what a file claims costs nothing.

use std::cell::Cell;

use gimli::{EndianSlice, RunTimeEndian};
use object::read::{CompressedData, CompressionFormat};
use usdtrec_buildid_cache::elf::{ObjectFile, Section};

/// Maximum length of the debugging information of a file and of the files that belong to it, decompressed, bytes.
const LIMIT: u64 = 1 << 30;
/// Length that is allowed for any file, bytes. Some file systems do not report the allocated size of a small file.
const MIN_CHECKED_BYTES: u64 = 16 << 20;
/// Maximum compression ratio. Compilers' output has up to 12.
const MAX_RATIO: u64 = 64;

/// The number of bytes of debugging information that may still be read.
#[derive(Debug)]
pub(super) struct Room(Cell<u64>);

impl Room {
    pub(super) const fn new() -> Self {
        Self(Cell::new(LIMIT))
    }

    fn take(&self, bytes: u64) -> Option<()> {
        self.0.set(self.0.get().checked_sub(bytes)?);
        Some(())
    }
}

/// The content of a section, decompressed; `None` if the section is missing, or exceeds the limit.
pub(super) fn section(file: &ObjectFile, name: &str, room: &Room) -> Option<Vec<u8>> {
    if let Some(section) = file.section(name) {
        if section.compressed {
            return compressed(file, section, room);
        }
        return plain(file, section, room);
    }
    // The form before SHF_COMPRESSED: `ZLIB` and the length, most significant byte first.
    let old = name.strip_prefix('.').map(|name| format!(".z{name}"))?;
    let raw = plain(file, file.section(&old)?, room)?;
    let (head, data) = raw.split_at_checked(12)?;
    let size = head.strip_prefix(b"ZLIB")?.first_chunk()?;
    inflate(
        CompressionFormat::Zlib,
        u64::from_be_bytes(*size),
        data,
        room,
    )
}

/// Whether the file has a section, compressed or not.
pub(super) fn has(file: &ObjectFile, name: &str) -> bool {
    let old = || name.strip_prefix('.').map(|name| format!(".z{name}"));
    file.section(name).is_some() || old().is_some_and(|old| file.section(&old).is_some())
}

/// The bytes in the file. The size is compared with the allocated size, because a sparse file can claim any length.
fn plain(file: &ObjectFile, section: &Section, room: &Room) -> Option<Vec<u8>> {
    let most = file
        .allocated()
        .saturating_mul(MAX_RATIO)
        .max(MIN_CHECKED_BYTES);
    if section.size > most {
        return None;
    }
    room.take(section.size)?;
    file.content(section, section.size).ok()
}

/// The decompressed content of a section with a compression header (ELF gABI, "Section Compression").
fn compressed(file: &ObjectFile, section: &Section, room: &Room) -> Option<Vec<u8>> {
    let raw = plain(file, section, room)?;
    let word = |at: usize| {
        let bytes: [u8; 4] = *raw.get(at..)?.first_chunk()?;
        Some(match file.is_big_endian() {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        })
    };
    let long = |at: usize| {
        let bytes: [u8; 8] = *raw.get(at..)?.first_chunk()?;
        Some(match file.is_big_endian() {
            true => u64::from_be_bytes(bytes),
            false => u64::from_le_bytes(bytes),
        })
    };
    // ch_type; (of class 64: reserved;) ch_size; ch_addralign
    let (size, header) = match file.is_class64() {
        true => (long(8)?, 24),
        false => (word(4)?.into(), 12),
    };
    let format = match word(0)? {
        1 => CompressionFormat::Zlib,
        2 => CompressionFormat::Zstandard,
        _ => return None,
    };
    inflate(format, size, raw.get(header..)?, room)
}

fn inflate(format: CompressionFormat, size: u64, data: &[u8], room: &Room) -> Option<Vec<u8>> {
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

/// What the readers of DWARF read from.
pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Whether one of the ranges has the address; damaged ones have none.
pub(super) fn covers(mut ranges: gimli::RangeIter<Slice<'_>>, pc: u64) -> bool {
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&pc) {
            return true;
        }
    }
    false
}
