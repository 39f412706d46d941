//! Errors of reading an ELF file.

use std::io;

/// Error of reading an ELF file. Messages do not name the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not an ELF file; the reason.
    #[error("not an ELF file ({0})")]
    NotElf(&'static str),
    /// A header is invalid; the reason.
    #[error("damaged ELF file: {0}")]
    Header(String),
    /// A relocatable object (`.o`, or a member of a static archive): its probes have no addresses before it is linked.
    #[error(
        "relocatable object (ET_REL): its probes have no addresses yet; give the linked program or library"
    )]
    Relocatable,
    /// A separate debug file.
    #[error("separate debug file, which repeats the probes of its program; give the program")]
    DebugFile,
}

impl From<object::read::Error> for ElfError {
    fn from(error: object::read::Error) -> Self {
        Self::Header(error.to_string())
    }
}

impl ElfError {
    /// Whether the [file system has not answered](crate::served).
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether the file is of a kind that cannot have probes, so that directory scans skip it without a message.
    #[must_use]
    pub fn is_other_file(&self) -> bool {
        matches!(self, Self::NotElf(_) | Self::Relocatable | Self::DebugFile)
    }
}
