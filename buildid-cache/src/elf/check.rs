//! Checks before a probe is attached: the file has the indexed build-id, the site is a nop in executable memory, the semaphore is in
//! writable memory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use usdtrec_format::{BuildId, Site};

use super::error::ElfError;
use super::headers::Segment;
use super::object_file::ObjectFile;
use super::scan::build_id;

/// Number of bytes read at a site: the longest instruction of any architecture, rounded up.
const INSTRUCTION_MAX: usize = 16;

/// Why a probe must not be attached in a file or at a site. Messages name neither the probe nor the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The file can no longer be read as ELF.
    #[error(transparent)]
    Unreadable(#[from] ElfError),
    /// The file is not the one that was indexed.
    #[error(
        "the file changed since it was indexed\n  indexed build-id {}, the file's is {}",
        words(.indexed.as_deref()), words(.found.as_deref())
    )]
    Changed {
        /// File.
        path: PathBuf,
        /// Build-id when indexed.
        indexed: Option<Box<BuildId>>,
        /// Build-id now.
        found: Option<Box<BuildId>>,
    },
    /// The file has no note for the site.
    #[error(
        "the file has no note for the site pc {pc:#x}, semaphore {semaphore:#x}, arguments {args:?}\n  \
         the build-id cache has an entry of a different file"
    )]
    NotInNotes {
        /// File.
        path: PathBuf,
        /// Address of the site that was indexed.
        pc: u64,
        /// Address of its semaphore; 0 without a semaphore.
        semaphore: u64,
        /// Its argument string.
        args: String,
    },
    /// No segment has the site in its file content.
    #[error("no segment of the file has the site's address {0:#x}")]
    NoContent(u64),
    /// The site is not in an executable segment.
    #[error("the site at {0:#x} is not in an executable segment")]
    NotExecutable(u64),
    /// The site is in a segment that is writable, too: the kernel inserts no breakpoint in writable mappings.
    #[error(
        "the site at {0:#x} is in an executable and writable segment, where the kernel attaches no probe\n  \
         link the program so that its code is not writable"
    )]
    WritableCode(u64),
    /// The site's file offset does not match its address.
    #[error("the site at {pc:#x} is at file offset {found:#x}, not {expected:#x} as indexed")]
    Moved {
        /// Address of the site.
        pc: u64,
        /// File offset that was indexed.
        expected: u64,
        /// File offset now.
        found: u64,
    },
    /// The instruction at the site is not a nop.
    #[error(
        "the instruction at {pc:#x} (file offset {offset:#x}) is not a nop: found {}", hex(.found)
    )]
    NotNop {
        /// Address of the site.
        pc: u64,
        /// File offset of the site.
        offset: u64,
        /// The bytes at the site, at most 4.
        found: Vec<u8>,
    },
    /// The semaphore is not in a writable segment.
    #[error("the semaphore at {0:#x} is not in a writable segment")]
    SemaphoreNotWritable(u64),
    /// The semaphore has no file offset (it is in `.bss`), by which the kernel finds it.
    #[error(
        "the semaphore at {0:#x} has no file offset (it is in .bss), so the kernel cannot increment it"
    )]
    SemaphoreNotInFile(u64),
}

impl ObjectFile {
    /// Checks that the file is linked, is not a debug file, and has the indexed build-id.
    ///
    /// # Errors
    /// [`CheckError::Unreadable`], [`CheckError::Changed`].
    pub fn check_file(&self, indexed: Option<BuildId>) -> Result<(), CheckError> {
        if self.headers().relocatable {
            return Err(ElfError::Relocatable.into());
        }
        if self.headers().is_debug_file {
            return Err(ElfError::DebugFile.into());
        }
        if self.build_id() != indexed {
            return Err(CheckError::Changed {
                path: self.path().to_owned(),
                indexed: indexed.map(Box::new),
                found: self.build_id().map(Box::new),
            });
        }
        Ok(())
    }

    /// Checks one site: executable segment, nop, semaphore.
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn check_site(&self, site: &Site) -> Result<(), CheckError> {
        self.check_code(site)?;
        self.check_semaphore(site)
    }

    /// A prefix of the instruction at a site to which the kernel attaches no probe, in any process: registering one succeeds if no process runs
    /// the program yet, and has no effect.
    #[must_use]
    pub fn unplanted_prefix(&self, site: &Site) -> Option<u8> {
        let bytes = self.bytes_at(site.offset?, INSTRUCTION_MAX).ok()?;
        self.arch()?.unplanted_prefix(&bytes)
    }

    fn check_code(&self, site: &Site) -> Result<(), CheckError> {
        let segments = &self.headers().segments;
        if !segments.iter().any(|segment| segment.holds(site.pc)) {
            return Err(CheckError::NoContent(site.pc));
        }
        let found = segments
            .iter()
            .filter(|segment| segment.executable)
            .find_map(|segment| segment.file_offset(site.pc, 1))
            .ok_or(CheckError::NotExecutable(site.pc))?;
        let is_code = |segment: &&Segment| segment.executable && segment.holds(site.pc);
        if segments
            .iter()
            .find(is_code)
            .is_some_and(|code| code.writable)
        {
            return Err(CheckError::WritableCode(site.pc));
        }
        let expected = site.offset.ok_or(CheckError::NoContent(site.pc))?;
        if found != expected {
            return Err(CheckError::Moved {
                pc: site.pc,
                expected,
                found,
            });
        }
        let bytes = self
            .bytes_at(found, INSTRUCTION_MAX)
            .map_err(ElfError::from)?;
        // The nops of an unknown architecture are unknown.
        if self.arch().is_none_or(|arch| arch.is_nop(&bytes)) {
            return Ok(());
        }
        Err(CheckError::NotNop {
            pc: site.pc,
            offset: found,
            found: bytes.into_iter().take(4).collect(),
        })
    }

    fn check_semaphore(&self, site: &Site) -> Result<(), CheckError> {
        let address = site.semaphore;
        if address == 0 {
            return Ok(());
        }
        let writable = self
            .headers()
            .segments
            .iter()
            .find(|segment| segment.writable && segment.holds(address))
            .ok_or(CheckError::SemaphoreNotWritable(address))?;
        match writable.file_offset(address, 2) {
            Some(offset) if site.semaphore_offset == Some(offset) => Ok(()),
            _ => Err(CheckError::SemaphoreNotInFile(address)),
        }
    }
}

/// State of a file since it was indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file has the indexed build-id.
    Current,
    /// The file has a different build-id (given here), no build-id, or is no longer an ELF file.
    Changed(Option<BuildId>),
    /// The file cannot be opened.
    Gone,
}

impl FileState {
    /// Compares the file that is now at a path with the indexed build-id.
    #[must_use]
    pub fn compare(path: &Path, indexed: BuildId) -> Self {
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
