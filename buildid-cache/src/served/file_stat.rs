//! What is known of a file beside its content.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, fstat, fstatfs};

use super::message::{numbers, put};
use crate::elf::FileId;

/// What is known of a file beside its content (stat(2), statfs(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStat {
    /// Device and inode.
    pub id: FileId,
    /// Length, bytes.
    pub len: u64,
    /// Allocated size, bytes.
    pub allocated: u64,
    /// Type and permissions (`st_mode`).
    pub mode: u32,
    /// Owner.
    pub user: u32,
    /// When the file was changed last (`st_ctime`), seconds and nanoseconds.
    pub changed: [i64; 2],
    /// When its content was changed last (`st_mtime`), seconds and nanoseconds.
    pub modified: [i64; 2],
    /// Type of its file system (`f_type`); 0 if that does not say it (FUSE).
    pub file_system: u64,
}

impl FileStat {
    /// Number of its numbers in a message.
    const NUMBERS: usize = 11;
    /// Size in a message, bytes.
    pub(super) const SIZE: usize = 8 * Self::NUMBERS;

    /// What the file system says, which may take any time.
    pub(super) fn of(handle: BorrowedFd<'_>) -> io::Result<Self> {
        let found = fstat(handle)?;
        Ok(Self {
            id: FileId {
                device: found.st_dev,
                inode: found.st_ino,
            },
            len: found.st_size.unsigned_abs(),
            // Units of 512 bytes, independent of the file system's block size (stat(2)).
            allocated: found.st_blocks.unsigned_abs().saturating_mul(512),
            mode: found.st_mode,
            user: found.st_uid,
            changed: [found.st_ctime, found.st_ctime_nsec as i64],
            modified: [found.st_mtime, found.st_mtime_nsec as i64],
            file_system: fstatfs(handle).map_or(0, |found| found.f_type as u64),
        })
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::RegularFile
    }

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        let [changed, modified] = [self.changed, self.modified];
        let times = [changed[0], changed[1], modified[0], modified[1]];
        let numbers: [u64; Self::NUMBERS - 4] = [
            self.id.device,
            self.id.inode,
            self.len,
            self.allocated,
            self.mode.into(),
            self.user.into(),
            self.file_system,
        ];
        put(bytes, &numbers);
        put(bytes, &times.map(i64::cast_unsigned));
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let numbers: [u64; Self::NUMBERS] = numbers(bytes)?;
        let [
            device,
            inode,
            len,
            allocated,
            mode,
            user,
            file_system,
            times @ ..,
        ] = numbers;
        let [changed, changed_ns, modified, modified_ns] = times.map(u64::cast_signed);
        Some(Self {
            id: FileId { device, inode },
            len,
            allocated,
            mode: u32::try_from(mode).ok()?,
            user: u32::try_from(user).ok()?,
            changed: [changed, changed_ns],
            modified: [modified, modified_ns],
            file_system,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_is_known_is_the_same_after_a_message() {
        let program = File::open(std::env::current_exe().unwrap()).unwrap();
        let found = FileStat::of(program.as_fd()).unwrap();
        assert!(found.is_file());
        let mut bytes = Vec::new();
        found.put(&mut bytes);
        assert_eq!(bytes.len(), FileStat::SIZE);
        assert_eq!(FileStat::parse(&bytes), Some(found));
        assert_eq!(FileStat::parse(&bytes[1..]), None);
    }
}
