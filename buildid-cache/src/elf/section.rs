//! The sections of an ELF file, and those that may have SDT notes.

use object::elf::{
    PT_NOTE, SHT_DYNSYM, SHT_NOTE, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX, SectionType,
};
use object::endian::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};

/// Types of the sections that are needed to read symbols.
pub(super) const SYMBOL_KINDS: [SectionType; 4] =
    [SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB_SHNDX];

/// A section header.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name, cut to 64 bytes.
    pub name: Vec<u8>,
    /// Type (`SHT_*`).
    pub kind: u32,
    /// Link-time address.
    pub address: u64,
    /// File offset of the content.
    pub offset: u64,
    /// Size of the content, bytes.
    pub size: u64,
    /// Whether it has no content in the file (`SHT_NOBITS`).
    pub no_bits: bool,
    /// Whether the content is compressed (`SHF_COMPRESSED`).
    pub compressed: bool,
}

/// Maximum number of note segments. Programs have up to three.
const MAX_SEGMENTS: usize = 256;
/// The section that `sys/sdt.h` writes.
pub(super) const USUAL: &[u8] = b".note.stapsdt";

/// Whether a section may have SDT notes: note sections, whatever their names, as `readelf -n` reads them; and the usual one, whatever its type.
pub(super) fn is_note(kind: SectionType, name: &[u8]) -> bool {
    kind == SHT_NOTE || name == USUAL
}

/// The note segments of a file without section headers, each as a section, of very many the first ones.
pub(super) fn notes_of_segments<Elf: FileHeader<Endian = Endianness>>(
    headers: &[Elf::ProgramHeader],
    endian: Endianness,
) -> Vec<Section> {
    let notes = headers
        .iter()
        .filter(|header| header.p_type(endian) == PT_NOTE)
        .take(MAX_SEGMENTS);
    let sections = notes.map(|header| {
        let (offset, size) = header.file_range(endian);
        Section {
            name: b"PT_NOTE".to_vec(),
            kind: SHT_NOTE.0,
            address: header.p_vaddr(endian).into(),
            offset,
            size,
            no_bits: false,
            compressed: false,
        }
    });
    apart(sections.collect())
}

/// Sections in the order of the file, without those that overlap an earlier one, so that no note is read twice.
pub(super) fn apart(mut sections: Vec<Section>) -> Vec<Section> {
    sections.sort_by_key(|section| section.offset);
    let mut end = 0;
    sections.retain(|section| {
        let is_apart = section.offset >= end;
        if is_apart {
            end = section.offset.saturating_add(section.size);
        }
        is_apart
    });
    sections
}
