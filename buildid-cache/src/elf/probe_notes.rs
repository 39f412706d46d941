//! The contents of what may have SDT notes.

use super::error::ElfError;
use super::note_sections::USUAL;
use super::object_file::ObjectFile;

impl ObjectFile {
    /// Whether a note section is large enough for a probe, as its header says: nothing is read. Those of most files, which have a build-id and
    /// properties, are not.
    #[must_use]
    pub fn may_have_probes(&self) -> bool {
        /// Header and owner of a note, and the ends of provider, name and arguments, bytes.
        const MIN_BYTES: u64 = 12 + 8 + 3;
        let address = if self.is_class64() { 8 } else { 4 };
        let mut notes = self.headers().notes.iter();
        notes.any(|section| section.size >= MIN_BYTES + 3 * address)
    }

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
