//! How a file appears among the mappings of a process.
//!
//! The device and the inode there are not always those of stat(2): btrfs and overlayfs show others. So the file is mapped here, too, and
//! looked up among the own mappings.

use std::fs::File;
use std::io::Read;

use memmap2::MmapOptions;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::{DeviceNumber, FileMapping, MappedInode};

/// Device and inode of a file in `/proc/PID/maps`, and in MMAP2 records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapIdentity {
    /// The device.
    pub device: DeviceNumber,
    /// The number of the inode.
    pub inode: u64,
}

impl MapIdentity {
    /// `None` if the file cannot be mapped. One that a helper reads is mapped by that, unless it was opened by a mapping.
    pub fn of_file(object: &ObjectFile) -> Option<Self> {
        let Some(file) = object.local() else {
            let known = object.mapped();
            let MappedInode { device, inode } = known.or_else(|| object.contents().mapped_as())?;
            return Some(Self { device, inode });
        };
        Self::of_open(file)
    }

    /// Maps an open file to learn them; `None` if it cannot be mapped.
    pub fn of_open(file: &File) -> Option<Self> {
        // SAFETY: the memory is never read: the mapping is looked up by its address, and removed.
        let mapped = unsafe { MmapOptions::new().len(1).map_copy_read_only(file) }.ok()?;
        let address = mapped.as_ptr() as u64;
        // Reads of a page: std begins with small ones if the length of a file is not known.
        let mut maps = Vec::with_capacity(1 << 14);
        File::open("/proc/self/maps")
            .and_then(|mut file| file.read_to_end(&mut maps))
            .ok()?;
        let mut maps = FileMapping::parse_all(&maps);
        let found = maps.find(|map| map.range.contains(&address))?;
        Some(Self {
            device: found.device,
            inode: found.inode,
        })
    }

    /// Whether these are its device and inode.
    pub fn is(&self, major: u32, minor: u32, inode: u64) -> bool {
        self.device == (DeviceNumber { major, minor }) && self.inode == inode
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_found_among_mappings() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"x").unwrap();
        let identity = MapIdentity::of_open(file.as_file()).unwrap();
        assert_eq!(identity.inode, file.as_file().metadata().unwrap().ino());
        let DeviceNumber { major, minor } = identity.device;
        assert!(identity.is(major, minor, identity.inode));
        assert!(!identity.is(major, minor, identity.inode + 1));
    }
}
