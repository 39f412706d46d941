//! What `/proc/PID/pagemap` says of a page.

/// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst).
const OF_FILE: u64 = 1 << 61;
const SWAPPED: u64 = 1 << 62;
const PRESENT: u64 = 1 << 63;

/// What is at an address of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// A page of the file.
    File,
    /// A copy of this process.
    Private,
    /// Not known.
    Unknown,
}

impl Page {
    /// The page of an entry.
    pub const fn from_entry(entry: u64) -> Self {
        if entry & (PRESENT | SWAPPED) == 0 {
            Self::Unknown
        } else if entry & OF_FILE != 0 {
            Self::File
        } else {
            Self::Private
        }
    }
}
