//! File mappings in `/proc/PID/maps` (proc_pid_maps(5)). Paths may contain any bytes.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What the kernel appends to the path of a deleted file.
const DELETED: &[u8] = b" (deleted)";

/// The number of a device (makedev(3)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// A mapping of a file in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMapping {
    /// The addresses.
    pub range: Range<u64>,
    /// Whether the memory is readable, writable and executable.
    pub permissions: [bool; 3],
    /// Whether what is written stays in the process (`MAP_PRIVATE`).
    pub is_private: bool,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// The file's device.
    pub device: DeviceNumber,
    /// Inode.
    pub inode: u64,
    /// Path as the process sees it.
    pub path: PathBuf,
    /// Whether the file was deleted after it was mapped.
    pub deleted: bool,
}

/// A file as the mappings of all processes have it. Files of several subvolumes of btrfs may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedInode {
    /// Device.
    pub device: DeviceNumber,
    /// Inode.
    pub inode: u64,
}

impl FileMapping {
    /// The file.
    #[must_use]
    pub const fn mapped_inode(&self) -> MappedInode {
        MappedInode {
            device: self.device,
            inode: self.inode,
        }
    }

    /// Parses the content of `/proc/PID/maps`. Anonymous and special mappings are skipped.
    pub fn parse_all(maps: &[u8]) -> impl Iterator<Item = Self> {
        maps.split(|&byte| byte == b'\n').filter_map(Self::parse)
    }

    /// Parses `START-END PERMS OFFSET MAJOR:MINOR INODE PATH[ (deleted)]`; `None` for other lines.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        // The fields before the path have no slash.
        let (fields, path) = line.split_at(line.iter().position(|&byte| byte == b'/')?);
        let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?.as_bytes();
        let offset = hex(fields.next()?)?;
        let (major, minor) = fields.next()?.split_once(':')?;
        let inode = fields.next()?.parse().ok().filter(|&inode| inode != 0)?;
        if fields.next().is_some() {
            return None;
        }
        let live = path.strip_suffix(DELETED);
        Some(Self {
            range: hex(start)?..hex(end)?,
            permissions: [b'r', b'w', b'x'].map(|letter| permissions.contains(&letter)),
            is_private: permissions.last() == Some(&b'p'),
            offset,
            device: DeviceNumber {
                major: u32::from_str_radix(major, 16).ok()?,
                minor: u32::from_str_radix(minor, 16).ok()?,
            },
            inode,
            path: unescaped(live.unwrap_or(path)),
            deleted: live.is_some(),
        })
    }

    /// The mapping's name in `/proc/PID/map_files`. Unlike in `maps`, addresses have no leading zeros there (fs/proc/base.c).
    #[must_use]
    pub fn map_files_name(&self) -> String {
        format!("{:x}-{:x}", self.range.start, self.range.end)
    }

    /// The path as the kernel prints it, with ` (deleted)` after it for a deleted file.
    #[must_use]
    pub fn display_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if self.deleted {
            path.push(" (deleted)");
        }
        path.into()
    }
}

/// Decodes `\012`, the only escape that the kernel writes in paths (a line feed).
fn unescaped(mut path: &[u8]) -> PathBuf {
    const LINE_FEED: &[u8] = b"\\012";
    let mut bytes = Vec::with_capacity(path.len());
    while let Some((&first, rest)) = path.split_first() {
        let (byte, rest) = match path.strip_prefix(LINE_FEED) {
            Some(rest) => (b'\n', rest),
            None => (first, rest),
        };
        bytes.push(byte);
        path = rest;
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn lines_of_maps_are_taken_apart() {
        let line = b"7f0a1c000000-7f0a1c021000 r-xp 00001000 fe:01 131 /tmp/a b\\012c (deleted)";
        let map = FileMapping::parse(line).unwrap();
        assert_eq!(map.map_files_name(), "7f0a1c000000-7f0a1c021000");
        let device = DeviceNumber {
            major: 0xfe,
            minor: 1,
        };
        assert_eq!((map.device, map.inode), (device, 131));
        assert_eq!((map.offset, map.permissions), (0x1000, [true, false, true]));
        assert_eq!(map.path, Path::new("/tmp/a b\nc"));
        assert_eq!(map.display_path(), Path::new("/tmp/a b\nc (deleted)"));
        for other in [
            "7ffd0-7ffd1 r-xp 00000000 00:00 0          [vdso]",
            "7ffd0-7ffd1 rw-p 00000000 00:00 0 ",
            "",
            "x",
            "1-2 r-xp 0 0:0 7 anon_inode:[perf_event]",
        ] {
            assert!(FileMapping::parse(other.as_bytes()).is_none(), "{other}");
        }
        let low = FileMapping::parse(b"00400000-00401000 r-xp 0 fe:01 7 /a").unwrap();
        assert_eq!(low.map_files_name(), "400000-401000");
        let odd = FileMapping::parse(b"1-2 r-xp 0 0:0 7       /tmp/\xff/a").unwrap();
        assert_eq!(odd.path.as_os_str().as_encoded_bytes(), b"/tmp/\xff/a");
    }
}
