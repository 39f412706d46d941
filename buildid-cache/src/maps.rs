//! Lines of `/proc/PID/maps` that name files (proc_pid_maps(5)). A path may be any bytes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What the kernel writes after the path of a file that was deleted.
const DELETED: &[u8] = b" (deleted)";

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// First address, and last address but one.
    pub range: (u64, u64),
    /// Whether it can be read, written, executed.
    pub permissions: [bool; 3],
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// Path as the process has it.
    pub path: PathBuf,
    /// Whether the file was deleted since.
    pub deleted: bool,
}

impl Map {
    /// All mappings of files in the content of `/proc/PID/maps`.
    pub fn all(maps: &[u8]) -> impl Iterator<Item = Self> {
        maps.split(|&byte| byte == b'\n').filter_map(Self::parse)
    }

    /// `START-END PERMS OFFSET MAJOR:MINOR INODE PATH[ (deleted)]`; `None` for what is no file's.
    fn parse(line: &[u8]) -> Option<Self> {
        // Nothing before a path has a slash in it.
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
            range: (hex(start)?, hex(end)?),
            permissions: [b'r', b'w', b'x'].map(|letter| permissions.contains(&letter)),
            offset,
            device: (
                u32::from_str_radix(major, 16).ok()?,
                u32::from_str_radix(minor, 16).ok()?,
            ),
            inode,
            path: unescaped(live.unwrap_or(path)),
            deleted: live.is_some(),
        })
    }

    /// The mapping's name in `map_files`: `maps` fills addresses up to 8 digits, `map_files` does not (fs/proc/base.c).
    #[must_use]
    pub fn link(&self) -> String {
        format!("{:x}-{:x}", self.range.0, self.range.1)
    }

    /// The path as the kernel shows it, with a mark if the file was deleted.
    #[must_use]
    pub fn shown_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if self.deleted {
            path.push(" (deleted)");
        }
        path.into()
    }
}

/// The kernel writes a line feed in a path as \012, and nothing else so.
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
        let map = Map::parse(line).unwrap();
        assert_eq!(map.link(), "7f0a1c000000-7f0a1c021000");
        assert_eq!((map.device, map.inode), ((0xfe, 1), 131));
        assert_eq!((map.offset, map.permissions), (0x1000, [true, false, true]));
        assert_eq!(map.path, Path::new("/tmp/a b\nc"));
        assert_eq!(map.shown_path(), Path::new("/tmp/a b\nc (deleted)"));
        for other in [
            "7ffd0-7ffd1 r-xp 00000000 00:00 0          [vdso]",
            "7ffd0-7ffd1 rw-p 00000000 00:00 0 ",
            "",
            "x",
            "1-2 r-xp 0 0:0 7 anon_inode:[perf_event]",
        ] {
            assert!(Map::parse(other.as_bytes()).is_none(), "{other}");
        }
        let low = Map::parse(b"00400000-00401000 r-xp 0 fe:01 7 /a").unwrap();
        assert_eq!(low.link(), "400000-401000");
        let odd = Map::parse(b"1-2 r-xp 0 0:0 7       /tmp/\xff/a").unwrap();
        assert_eq!(odd.path.as_os_str().as_encoded_bytes(), b"/tmp/\xff/a");
    }
}
