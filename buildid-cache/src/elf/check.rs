//! What must hold before a probe is planted: the file is the one that was indexed, the site is a nop in
//! executable memory, the semaphore lies in writable memory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use usdtrec_format::{Arch, Binary, BuildId, Site};

use super::image::Image;
use super::{ElfError, build_id};

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
        words(.indexed.as_ref()), words(.found.as_ref()), .path.display()
    )]
    Changed {
        /// File.
        path: PathBuf,
        /// Build-id when indexed.
        indexed: Option<BuildId>,
        /// Build-id now.
        found: Option<BuildId>,
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

/// A file that was opened to check sites in it, once for all of its sites.
#[derive(Debug)]
pub struct Preflight {
    image: Image,
}

impl Preflight {
    /// Opens the file of a binary and compares its build-id with the one that was indexed.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`], [`Refusal::Changed`].
    pub fn open(binary: &Binary) -> Result<Self, Refusal> {
        Self::open_as(&binary.path, &binary.path, binary.build_id)
    }

    /// As [`open`](Self::open), reading the file through another path (a container's, seen from
    /// outside) than the one that messages name.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`], [`Refusal::Changed`].
    pub fn open_as(path: &Path, named: &Path, indexed: Option<BuildId>) -> Result<Self, Refusal> {
        let image = Image::open(path)?;
        if image.relocatable {
            return Err(ElfError::Relocatable.into());
        }
        if image.is_debug_file() {
            return Err(ElfError::DebugFile.into());
        }
        if image.build_id != indexed {
            return Err(Refusal::Changed {
                path: named.to_owned(),
                indexed,
                found: image.build_id,
            });
        }
        Ok(Self { image })
    }

    /// Checks one site: executable segment, nop, semaphore.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check(&self, site: &Site) -> Result<(), Refusal> {
        self.check_code(site)?;
        self.check_semaphore(site)
    }

    fn check_code(&self, site: &Site) -> Result<(), Refusal> {
        let segments = &self.image.segments;
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
        let bytes = self
            .image
            .bytes_at::<NOP_MAX>(found)
            .map_err(ElfError::from)?;
        // The nops of a machine that we do not know cannot be told.
        let Some(nops) = self.image.arch.map(Arch::nops) else {
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
            .image
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

/// Checks one site of a file. For many sites of one file, use [`Preflight`].
///
/// `indexed` is the build-id that the file had when it was indexed.
///
/// # Errors
/// [`Refusal`].
pub fn check_site(path: &Path, indexed: Option<BuildId>, site: &Site) -> Result<(), Refusal> {
    Preflight::open_as(path, path, indexed)?.check(site)
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
