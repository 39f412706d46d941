//! Mappings of no file in `/proc/PID/maps` (proc_pid_maps(5)).

use std::ops::Range;

/// Memory of a process that is that of no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMapping {
    /// The addresses.
    pub range: Range<u64>,
    /// Whether the memory is readable, writable and executable.
    pub permissions: [bool; 3],
    /// A name such as `[heap]` or `[anon:jit]`; empty if it has none.
    pub name: Vec<u8>,
}

impl MemoryMapping {
    /// Parses the content of `/proc/PID/maps`. Mappings of files are skipped.
    pub fn parse_all(maps: &[u8]) -> impl Iterator<Item = Self> {
        maps.split(|&byte| byte == b'\n').filter_map(Self::parse)
    }

    /// Parses `START-END PERMS OFFSET MAJOR:MINOR 0 [NAME]`; `None` for other lines.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = text()?.split_once('-')?;
        let permissions = text()?.as_bytes();
        let (_offset, _device, inode) = (text()?, text()?, text()?);
        let name = fields.next().unwrap_or_default().trim_ascii();
        let is_memory = inode == "0" && (name.is_empty() || name.starts_with(b"["));
        is_memory.then_some(Self {
            range: hex(start)?..hex(end)?,
            permissions: [b'r', b'w', b'x'].map(|letter| permissions.contains(&letter)),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_no_file_have_a_name_or_none() {
        let maps = b"00400000-00401000 r-xp 00000000 fe:01 7          /bin/a [b]
7f00-8f00 rwxp 00000000 00:00 0 
7ffd0-7ffd1 r-xp 00000000 00:00 0                          [vdso]
9000-a000 --xp 00000000 00:00 0                          [anon:a /b]
b000-c000 rwxp 00000000 00:01 9                          /memfd:jit (deleted)
1-2 r-xp 0 0:0 7 anon_inode:[perf_event]
1-2 r-xp 0 0:0
x

";
        let all: Vec<_> = MemoryMapping::parse_all(maps)
            .map(|map| (map.range, map.permissions, map.name))
            .collect();
        let expected = [
            (0x7f00..0x8f00, [true; 3], &b""[..]),
            (0x7_ffd0..0x7_ffd1, [true, false, true], b"[vdso]"),
            (0x9000..0xa000, [false, false, true], b"[anon:a /b]"),
        ];
        let expected = expected.map(|(range, permissions, name)| (range, permissions, name.into()));
        assert_eq!(all, expected);
    }
}
