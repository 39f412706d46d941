//! SDT notes: the records of an ELF file's `.note.stapsdt` section (stub: see the crate's design).

/// How to read the words of a note section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteLayout {
    /// Whether addresses are 8 bytes (ELF class 64) or 4.
    pub class64: bool,
    /// Whether words are big-endian.
    pub big_endian: bool,
}

/// One SDT note (owner `stapsdt`, type 3), as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Provider, as written. Bytes that are not UTF-8 become U+FFFD.
    pub provider: String,
    /// Probe name, as written (`gc__start`, `mixed_name-here`).
    pub name: String,
    /// Address of the nop, as linked (before the prelink adjustment).
    pub pc: u64,
    /// Link-time address of `.stapsdt.base`; 0 if unknown.
    pub base: u64,
    /// Link-time address of the semaphore; 0 if there is none.
    pub semaphore: u64,
    /// Argument string (`-4@%ebx 8@%rbp`).
    pub args: String,
}

/// Why the notes of a section could not be read further, or one of them could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SDT note at offset {offset:#x} of the section: expected {expected}, found {found}")]
pub struct NoteError {
    /// Offset in the section.
    pub offset: usize,
    /// What should be there.
    pub expected: &'static str,
    /// What is.
    pub found: String,
}

/// Decodes the notes of a `.note.stapsdt` section. A note that cannot be read is one `Err` and costs
/// its neighbours nothing, where the section can still be walked.
pub fn notes(
    _section: &[u8],
    _layout: NoteLayout,
) -> impl Iterator<Item = Result<Note, NoteError>> {
    std::iter::empty()
}
