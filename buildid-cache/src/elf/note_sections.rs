//! Where an ELF file may have SDT notes.

use object::elf::{PT_NOTE, SHT_NOTE};
use object::endian::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};

use super::section::Section;

/// The section that `sys/sdt.h` writes.
pub(super) const USUAL: &[u8] = b".note.stapsdt";

/// The note sections of a file, whatever their names, as `readelf -n` reads them; and the usual one, whatever its type.
pub(super) fn of_sections(sections: &[Section]) -> Vec<Section> {
    let is_note = |section: &&Section| {
        !section.no_bits && section.kind == SHT_NOTE.0 || section.name == USUAL
    };
    apart(sections.iter().filter(is_note).cloned().collect())
}

/// The note segments of a file without section headers, each as a section.
pub(super) fn of_segments<Elf: FileHeader<Endian = Endianness>>(
    headers: &[Elf::ProgramHeader],
    endian: Endianness,
) -> Vec<Section> {
    let notes = headers
        .iter()
        .filter(|header| header.p_type(endian) == PT_NOTE);
    let sections = notes.map(|header| {
        let (offset, size) = header.file_range(endian);
        Section {
            name: b"PT_NOTE".to_vec(),
            kind: SHT_NOTE.0,
            address: header.p_vaddr(endian).into(),
            offset,
            size,
            no_bits: false,
            code: false,
            compressed: false,
        }
    });
    apart(sections.collect())
}

/// Sections in the order of the file, without those that overlap an earlier one, so that no note is read twice.
fn apart(mut sections: Vec<Section>) -> Vec<Section> {
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
