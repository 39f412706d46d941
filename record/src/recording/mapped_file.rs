//! A mapping, who has it, and which file it is of.

use std::io;

use usdtrec_buildid_cache::elf::{ElfError, ObjectFile};
use usdtrec_buildid_cache::process::{open_formerly_mapped, open_mapped};
use usdtrec_buildid_cache::served::Patience;
use usdtrec_buildid_cache::{DeviceNumber, FileMapping, MappedInode};

/// A mapping, and the process that has or had it.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) mapped_at: u64,
    pub(super) mapping: FileMapping,
}

impl Mapped {
    /// Opens the file: as the process maps it, or, if that has ended, by its path.
    pub(super) fn open(&self, patience: Patience) -> Result<ObjectFile, ElfError> {
        let gone = || ElfError::Io(io::ErrorKind::NotFound.into());
        let by_process = u32::try_from(self.pid).map_err(|_| gone())?;
        match open_mapped(by_process, &self.mapping, patience) {
            Err(error) if error.is_timeout() => Err(error),
            // The id of the process may be that of another by now.
            Err(ElfError::Io(error)) => {
                open_formerly_mapped(&self.mapping, patience).map_err(|_| ElfError::Io(error))
            }
            outcome => outcome,
        }
    }
}

/// A file as mappings identify it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MappedFileId {
    pub(super) device: DeviceNumber,
    pub(super) inode: u64,
    /// Generation of the inode, whose number another file may get; 0 if it is not known.
    pub(super) generation: u64,
}

impl MappedFileId {
    /// The same without the generation.
    pub(super) const fn mapped_inode(self) -> MappedInode {
        let Self { device, inode, .. } = self;
        MappedInode { device, inode }
    }
}

#[cfg(test)]
impl MappedFileId {
    /// A file of tests.
    pub(super) fn numbered(inode: u64) -> Self {
        Self {
            inode,
            ..Self::default()
        }
    }
}
