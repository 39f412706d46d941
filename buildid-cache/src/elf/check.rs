//! What must hold before a probe is planted: the file is the one that was indexed, the site is a nop in
//! executable memory, the semaphore lies in writable memory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use usdtrec_format::escape::shown;
use usdtrec_format::{Arch, BuildId, Site};

use super::error::ElfError;
use super::object_file::ObjectFile;
use super::scan::build_id;

/// Longest nop of any architecture that is looked at, bytes.
const NOP_MAX: usize = 16;

/// Why nothing is planted in a file or at a site. `Display` says it in words, without naming the probe or the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The file cannot be read as ELF any more.
    #[error("{0}")]
    Unreadable(#[from] ElfError),
    /// The file is another one than was indexed.
    #[error(
        "the file changed since it was indexed\n  indexed build-id {}, the file's is {}\n  refresh with: usdtrec buildid-cache --update {}",
        words(.indexed.as_ref()), words(.found.as_ref()), shown(.path)
    )]
    Changed {
        /// File.
        path: PathBuf,
        /// Build-id when indexed.
        indexed: Option<BuildId>,
        /// Build-id now.
        found: Option<BuildId>,
    },
    /// None of the file's own notes describes the site.
    #[error(
        "the file's own notes have no such site: pc {pc:#x}, semaphore {semaphore:#x}, arguments {args:?}\n  \
         what the build-id cache holds of this file is not this file's; forget it with: usdtrec buildid-cache --purge {}",
        shown(.path)
    )]
    NotInNotes {
        /// File.
        path: PathBuf,
        /// Address of the site that was indexed.
        pc: u64,
        /// Its semaphore's, 0 for none.
        semaphore: u64,
        /// Its argument string.
        args: String,
    },
    /// The site lies in no file content, so that nothing can be planted there.
    #[error("no segment of the file holds the site's address {0:#x}")]
    NoContent(u64),
    /// The site lies in no executable segment.
    #[error("the site at {0:#x} is not in an executable segment")]
    NotExecutable(u64),
    /// The site's offset is not where its address lies in the file.
    #[error("the site at {pc:#x} is at file offset {found:#x}, not {expected:#x} as indexed")]
    Moved {
        /// Address of the site.
        pc: u64,
        /// File offset that was indexed.
        expected: u64,
        /// File offset now.
        found: u64,
    },
    /// What stands at the site is no nop.
    #[error(
        "the instruction at {pc:#x} (file offset {offset:#x}) is not a nop: found {}", hex(.found)
    )]
    NotNop {
        /// Address of the site.
        pc: u64,
        /// File offset of the site.
        offset: u64,
        /// Bytes found there.
        found: Vec<u8>,
    },
    /// The semaphore lies in no writable segment.
    #[error("the semaphore at {0:#x} is not in a writable segment")]
    SemaphoreNotWritable(u64),
    /// The semaphore has no place in the file (zero-initialised memory), where the kernel could find it.
    #[error(
        "the semaphore at {0:#x} has no place in the file (zero-initialised memory), so the kernel cannot count it up"
    )]
    SemaphoreNotInFile(u64),
}

impl ObjectFile {
    /// Checks that probes can be planted in the file at all, and that it has the build-id that was indexed.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`], [`Refusal::Changed`].
    pub fn check_file(&self, indexed: Option<BuildId>) -> Result<(), Refusal> {
        if self.headers().relocatable {
            return Err(ElfError::Relocatable.into());
        }
        if self.headers().is_debug_file() {
            return Err(ElfError::DebugFile.into());
        }
        if self.build_id() != indexed {
            return Err(Refusal::Changed {
                path: self.path().to_owned(),
                indexed,
                found: self.build_id(),
            });
        }
        Ok(())
    }

    /// Checks one site: executable segment, nop, semaphore.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check_site(&self, site: &Site) -> Result<(), Refusal> {
        self.check_code(site)?;
        self.check_semaphore(site)
    }

    fn check_code(&self, site: &Site) -> Result<(), Refusal> {
        let segments = &self.headers().segments;
        if !segments.iter().any(|segment| segment.holds(site.pc)) {
            return Err(Refusal::NoContent(site.pc));
        }
        let found = segments
            .iter()
            .filter(|segment| segment.executable)
            .find_map(|segment| segment.file_offset(site.pc, 1))
            .ok_or(Refusal::NotExecutable(site.pc))?;
        let expected = site.offset.ok_or(Refusal::NoContent(site.pc))?;
        if found != expected {
            return Err(Refusal::Moved {
                pc: site.pc,
                expected,
                found,
            });
        }
        let bytes = self.bytes_at(found, NOP_MAX).map_err(ElfError::from)?;
        // The nops of a machine that we do not know cannot be told.
        let Some(nops) = self.arch().map(Arch::nops) else {
            return Ok(());
        };
        if nops.iter().any(|nop| bytes.starts_with(nop)) {
            return Ok(());
        }
        Err(Refusal::NotNop {
            pc: site.pc,
            offset: found,
            found: bytes.into_iter().take(4).collect(),
        })
    }

    fn check_semaphore(&self, site: &Site) -> Result<(), Refusal> {
        let address = site.semaphore;
        if address == 0 {
            return Ok(());
        }
        let writable = self
            .headers()
            .segments
            .iter()
            .find(|segment| segment.writable && segment.holds(address))
            .ok_or(Refusal::SemaphoreNotWritable(address))?;
        match writable.file_offset(address, 2) {
            Some(offset) if site.semaphore_offset == Some(offset) => Ok(()),
            _ => Err(Refusal::SemaphoreNotInFile(address)),
        }
    }
}

/// What became of a file since it was indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It has the build-id that was indexed.
    Current,
    /// It has another build-id, or none, or is no ELF file any more.
    Changed(Option<BuildId>),
    /// It cannot be opened.
    Gone,
}

impl FileState {
    /// Compares the file that now stands at a path with what was indexed.
    #[must_use]
    pub fn of(path: &Path, indexed: BuildId) -> Self {
        match build_id(path) {
            Ok(Some(found)) if found == indexed => Self::Current,
            Ok(found) => Self::Changed(found),
            Err(ElfError::Io(_)) => Self::Gone,
            Err(_) => Self::Changed(None),
        }
    }
}

fn words(build_id: Option<&BuildId>) -> String {
    build_id.map_or_else(|| "none".to_owned(), ToString::to_string)
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "the end of the file".to_owned();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{byte:02x}");
        text
    })
}
