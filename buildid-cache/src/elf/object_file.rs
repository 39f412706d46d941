//! An ELF file that is opened once and read through that descriptor.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use usdtrec_format::{Arch, BuildId};

use super::error::ElfError;
use super::file_id::FileId;
use super::headers::{HeaderLimits, Headers};
use super::section::Section;
use crate::file_mapping::MappedInode;
use crate::open_path;
use crate::served::{Contents, Handle, PositionedReader, Reader};

/// An open ELF file: a program or a library.
///
/// The file is opened once, so that the file that is checked, the file that is read and the file to which the kernel attaches probes are
/// the same even if the path is exchanged. Contents are read on demand with positioned reads, and not mapped.
#[derive(Debug)]
pub struct ObjectFile {
    contents: Arc<Contents>,
    path: PathBuf,
    found: Found,
    mapped: Option<MappedInode>,
    headers: Headers,
}

/// What is known of a file before its headers are read.
#[derive(Debug)]
struct Found {
    id: FileId,
    len: u64,
    allocated: u64,
    owner: u32,
}

/// Equal if device and inode are equal.
impl PartialEq for ObjectFile {
    fn eq(&self, other: &Self) -> bool {
        self.found.id == other.found.id
    }
}

impl Eq for ObjectFile {}

impl ObjectFile {
    /// Opens a regular file and reads its headers. A path through `/proc/PID/root`, `exe`, `cwd`, `fd` or `map_files` is resolved as that
    /// process sees it; symbolic links below `root` stay below it.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn open(path: &Path) -> Result<Self, ElfError> {
        let opened = open_path::regular_file(path)?;
        Self::from_file(opened.file, opened.path)
    }

    /// As [`open`](Self::open), of a file that others control: its file system is [not waited for](crate::served) for long.
    ///
    /// # Errors
    /// [`ElfError`]; `TimedOut` if the file system does not answer.
    pub fn open_foreign(path: &Path, reader: Reader) -> Result<Self, ElfError> {
        let handle = Handle::of_path(path, reader)?;
        let path = handle.name().to_owned();
        Self::of_handle(handle, path, HeaderLimits::NAMED)
    }

    /// As [`from_file`](Self::from_file), of a file that a process maps, which may be hostile and one of very many: less of it is read.
    ///
    /// # Errors
    /// [`ElfError`]; `TimedOut` if the file system does not answer.
    pub fn from_handle(handle: Handle, path: PathBuf) -> Result<Self, ElfError> {
        Self::of_handle(handle, path, HeaderLimits::MAPPED)
    }

    fn of_handle(handle: Handle, path: PathBuf, limits: HeaderLimits) -> Result<Self, ElfError> {
        let stat = *handle.stat();
        let found = Found {
            id: stat.id,
            len: stat.len,
            allocated: stat.allocated,
            owner: stat.user,
        };
        Self::read(handle.open()?, path, found, limits)
    }

    /// Reads the headers of an open regular file. `path` is used in messages and traces only, and not opened.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn from_file(file: File, path: PathBuf) -> Result<Self, ElfError> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ElfError::NotElf("not a regular file"));
        }
        let found = Found {
            id: FileId::from(&metadata),
            len: metadata.len(),
            // Units of 512 bytes, independent of the file system's block size (stat(2)).
            allocated: metadata.blocks().saturating_mul(512),
            owner: metadata.uid(),
        };
        Self::read(Contents::Local(file), path, found, HeaderLimits::NAMED)
    }

    fn read(
        contents: Contents,
        path: PathBuf,
        found: Found,
        limits: HeaderLimits,
    ) -> Result<Self, ElfError> {
        let headers = Headers::read(&contents, found.len, limits)?;
        Ok(Self {
            found,
            contents: Arc::new(contents),
            mapped: None,
            path,
            headers,
        })
    }

    /// With the device and the inode that mappings of it have.
    #[must_use]
    pub(crate) fn mapped_as(self, mapped: MappedInode) -> Self {
        let mapped = Some(mapped);
        Self { mapped, ..self }
    }

    /// Gives answers about the file the usual time from now on.
    #[must_use]
    pub fn patiently(mut self) -> Self {
        if let Some(Contents::Served(file)) = Arc::get_mut(&mut self.contents) {
            file.set_patient();
        }
        self
    }

    /// The path for messages and traces: with links resolved if that path leads to the file; below `/proc/PID/root` for a file that only
    /// a process sees; `PATH (deleted)` for a deleted file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// With another path for messages and traces.
    #[must_use]
    pub(crate) fn named(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    /// Device and inode.
    #[must_use]
    pub const fn id(&self) -> FileId {
        self.found.id
    }

    /// The open file, if this process reads it itself.
    #[must_use]
    pub fn local(&self) -> Option<&File> {
        self.contents.local()
    }

    /// The content.
    #[must_use]
    pub const fn contents(&self) -> &Arc<Contents> {
        &self.contents
    }

    /// A reader of the content.
    #[must_use]
    pub fn reader(&self) -> PositionedReader {
        PositionedReader::new(Arc::clone(&self.contents), self.found.len)
    }

    /// The user who owned the file when it was opened.
    #[must_use]
    pub const fn owner(&self) -> u32 {
        self.found.owner
    }

    /// Device and inode in the mapping by which it was opened.
    #[must_use]
    pub const fn mapped(&self) -> Option<MappedInode> {
        self.mapped
    }

    /// Length of the file when it was opened, bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.found.len
    }

    /// Whether the length is 0, which it never is for an ELF file.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.len == 0
    }

    /// Allocated size on disk, bytes. It is less than the length for a sparse file.
    #[must_use]
    pub const fn allocated(&self) -> u64 {
        self.found.allocated
    }

    /// GNU build-id.
    #[must_use]
    pub const fn build_id(&self) -> Option<BuildId> {
        self.headers.build_id
    }

    /// Architecture, if known.
    #[must_use]
    pub const fn arch(&self) -> Option<Arch> {
        self.headers.arch
    }

    /// Whether the file is big-endian.
    #[must_use]
    pub const fn is_big_endian(&self) -> bool {
        self.headers.layout.big_endian
    }

    /// Whether the file has ELF class 64.
    #[must_use]
    pub const fn is_class64(&self) -> bool {
        self.headers.layout.class64
    }

    /// `/proc/self/fd/N`: a path by which the kernel finds this file when this process passes it. Valid while this object lives.
    #[must_use]
    pub fn kernel_path(&self) -> CString {
        let path = format!("/proc/self/fd/{}", self.contents.as_fd().as_raw_fd());
        // Never fails: the path has no NUL.
        CString::new(path).unwrap_or_default()
    }

    pub(super) const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The first section of this name, if it is one that is asked for: of symbols, relocations, unwind tables or debugging information. Others are not
    /// kept, since a file may have very many.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.headers.section(name.as_bytes())
    }

    /// Reads a section's content of at most `limit` bytes.
    ///
    /// # Errors
    /// [`ElfError::Header`] if the header claims more than `limit` or more than the file has; [`ElfError::Io`].
    pub fn content(&self, section: &Section, limit: u64) -> Result<Vec<u8>, ElfError> {
        if section.size > limit || !self.has(section) {
            return Err(ElfError::Header(format!(
                "section {} claims {} bytes at offset {:#x} of a file of {} bytes (expected at most {limit})",
                String::from_utf8_lossy(&section.name),
                section.size,
                section.offset,
                self.found.len
            )));
        }
        let mut content = vec![0; section.size as usize];
        self.contents.read_exact_at(&mut content, section.offset)?;
        Ok(content)
    }

    /// Whether the file has all bytes that the header of a section claims.
    pub(super) fn has(&self, section: &Section) -> bool {
        let end = section.offset.checked_add(section.size);
        !section.no_bits && end.is_some_and(|end| end <= self.found.len)
    }

    /// Reads up to `len` bytes at a file offset; fewer at the end of the file.
    ///
    /// # Errors
    /// The error of `pread(2)`.
    pub fn bytes_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            let at = offset.saturating_add(filled as u64);
            match self.contents.read_at(&mut bytes[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Reads `len` bytes of code at a link-time address; `None` unless one executable segment has all of them in the file.
    #[must_use]
    pub fn code_at(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut segments = self.headers.segments.iter();
        let offset = segments.find_map(|segment| {
            let offset = segment.file_offset(address, len as u64)?;
            segment.executable.then_some(offset)
        })?;
        let bytes = self.bytes_at(offset, len).ok()?;
        (bytes.len() == len).then_some(bytes)
    }
}
