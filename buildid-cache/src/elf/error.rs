//! Why a file cannot be read as ELF.

use std::io;

/// Why a file's probes cannot be read. The messages do not name the file; callers do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no ELF file; the reason.
    #[error("not an ELF file ({0})")]
    NotElf(&'static str),
    /// A header says what cannot be.
    #[error("damaged ELF file: {0}")]
    Header(String),
    /// A relocatable object (`.o`, or a member of a static archive): its probes have no addresses before it is linked.
    #[error(
        "relocatable object (ET_REL): its probes have no addresses yet; give the linked program or library"
    )]
    Relocatable,
    /// A separate debug file.
    #[error(
        "separate debug file: it repeats the probes of the program that it belongs to; give that one"
    )]
    DebugFile,
}

impl From<object::read::Error> for ElfError {
    fn from(error: object::read::Error) -> Self {
        Self::Header(error.to_string())
    }
}

impl ElfError {
    /// Whether the file simply is not of the kind that can carry probes, so that walking a tree passes over it without a word.
    #[must_use]
    pub fn is_other_file(&self) -> bool {
        matches!(self, Self::NotElf(_) | Self::Relocatable | Self::DebugFile)
    }
}
