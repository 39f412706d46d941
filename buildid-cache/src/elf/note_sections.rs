//! Where an ELF file may have SDT notes.

use object::elf::{PT_NOTE, SHT_NOTE};
use object::endian::Endianness;
use object::read::elf::{FileHeader, ProgramHeader};

use super::error::ElfError;
use super::headers::Section;
use super::object_file::ObjectFile;

/// The section that `sys/sdt.h` writes.
const USUAL: &[u8] = b".note.stapsdt";

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

impl ObjectFile {
    /// The contents of the sections that have SDT notes, of at most `room` bytes in all. What cannot be read is left out, unless it is
    /// the usual section.
    pub(super) fn probe_notes(
        &self,
        mut room: u64,
    ) -> impl Iterator<Item = Result<Vec<u8>, ElfError>> {
        self.headers().notes.iter().filter_map(move |section| {
            let is_usual = section.name == USUAL;
            match self.content(section, room) {
                Ok(content) => {
                    room -= section.size;
                    let has_owner = || content.windows(8).any(|bytes| bytes == b"stapsdt\0");
                    (is_usual || has_owner()).then_some(Ok(content))
                }
                Err(error) => is_usual.then_some(Err(error)),
            }
        })
    }
}
