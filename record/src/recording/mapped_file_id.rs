//! Which file a mapping is of.

use usdtrec_buildid_cache::DeviceNumber;

/// A file as mappings identify it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MappedFileId {
    pub(super) device: DeviceNumber,
    pub(super) inode: u64,
    /// Generation of the inode, whose number another file may get; 0 if it is not known.
    pub(super) generation: u64,
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
