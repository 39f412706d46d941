//! The files that a running process maps, and their probes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::elf::{self, ElfError, Scan};

/// A file that a process maps and that carries probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// What was found in it; the path is the process's, which may be another root's or name a deleted file.
    pub scan: Scan,
    /// A path that leads to the file from here: its own, one below `/proc/PID/root`, or one in `/proc/PID/map_files`.
    pub access: PathBuf,
    /// Whether the file was deleted, or replaced by another at its path, since it was mapped.
    pub deleted: bool,
}

/// What a process maps.
#[derive(Debug, Default)]
pub struct ProcessFiles {
    /// Files with probes, in the order of the maps, each file once.
    pub mapped: Vec<Mapped>,
    /// Files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, ElfError)>,
}

/// Reads the probes of all files that a process maps.
///
/// # Errors
/// If `/proc/PID/maps` cannot be read: no such process, or no permission to look into it.
pub fn binaries(pid: u32) -> io::Result<ProcessFiles> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read(proc.join("maps"))?;
    let mut seen = HashSet::new();
    let mappings: Vec<Mapping<'_>> = maps
        .split(|&byte| byte == b'\n')
        .filter_map(Mapping::parse)
        .filter(|mapping| seen.insert((mapping.device, mapping.inode)))
        .collect();
    let outcomes: Vec<_> = mappings
        .par_iter()
        .map(|mapping| (mapping, mapping.read(&proc)))
        .collect();
    let mut files = ProcessFiles::default();
    for (mapping, outcome) in outcomes {
        match outcome {
            Ok(mapped)
                if mapped.scan.binary.probes.is_empty() && mapped.scan.damaged.is_empty() => {}
            Ok(mapped) => files.mapped.push(mapped),
            Err(error) if error.is_other_file() => {}
            Err(error) => files.unreadable.push((mapping.path.clone(), error)),
        }
    }
    Ok(files)
}

/// One line of `/proc/PID/maps` that names a file.
struct Mapping<'a> {
    range: &'a str,
    device: &'a str,
    inode: u64,
    path: PathBuf,
    deleted: bool,
}

impl<'a> Mapping<'a> {
    /// `START-END PERMS OFFSET MAJOR:MINOR INODE PATH[ (deleted)]`
    fn parse(line: &'a [u8]) -> Option<Self> {
        // Nothing before a path has a slash in it, and a path may be any bytes.
        let (fields, path) = line.split_at(line.iter().position(|&byte| byte == b'/')?);
        let mut fields = std::str::from_utf8(fields).ok()?.split_ascii_whitespace();
        let mut field = || fields.next();
        let (range, _, _, device, inode) = (field()?, field()?, field()?, field()?, field()?);
        if fields.next().is_some() {
            return None;
        }
        let inode = inode.parse().ok().filter(|&inode| inode != 0)?;
        let deleted = path.strip_suffix(b" (deleted)");
        Some(Self {
            range,
            device,
            inode,
            path: unescaped(deleted.unwrap_or(path)),
            deleted: deleted.is_some(),
        })
    }

    fn read(&self, proc: &Path) -> Result<Mapped, ElfError> {
        let access = self.access(proc)?;
        let mut scan = elf::scan(&access)?;
        scan.binary.path.clone_from(&self.path);
        Ok(Mapped {
            deleted: self.deleted || access.starts_with(proc.join("map_files")),
            scan,
            access,
        })
    }

    /// A path that leads to the very file that is mapped.
    fn access(&self, proc: &Path) -> Result<PathBuf, ElfError> {
        let link = proc.join("map_files").join(self.range);
        let identity = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        let mapped = identity(&link);
        let is_it = |path: &PathBuf| match (identity(path), mapped) {
            (Some(found), Some(mapped)) => found == mapped,
            // map_files takes privileges; the inode's number then has to do.
            (Some(found), None) => found.1 == self.inode,
            (None, _) => false,
        };
        let inside = proc
            .join("root")
            .join(self.path.strip_prefix("/").unwrap_or(&self.path));
        if !self.deleted
            && let Some(path) = [self.path.clone(), inside].into_iter().find(is_it)
        {
            return Ok(path);
        }
        match fs::metadata(&link) {
            Ok(_) => Ok(link),
            Err(error) => Err(ElfError::Io(io::Error::new(
                error.kind(),
                format!(
                    "the file was deleted or replaced, and {}: {error}",
                    link.display()
                ),
            ))),
        }
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
    use super::*;

    #[test]
    fn lines_of_maps_are_taken_apart() {
        let line = b"7f0a1c000000-7f0a1c021000 r-xp 00001000 fe:01 131 /tmp/a b\\012c (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!(mapping.range, "7f0a1c000000-7f0a1c021000");
        assert_eq!((mapping.device, mapping.inode), ("fe:01", 131));
        assert_eq!(mapping.path, Path::new("/tmp/a b\nc"));
        assert!(mapping.deleted);
        for other in [
            "7ffd0-7ffd1 r-xp 00000000 00:00 0          [vdso]",
            "7ffd0-7ffd1 rw-p 00000000 00:00 0 ",
            "",
            "x",
            "1-2 r-xp 0 0:0 7 anon_inode:[perf_event]",
        ] {
            assert!(Mapping::parse(other.as_bytes()).is_none(), "{other}");
        }
        let odd = Mapping::parse(b"1-2 r-xp 0 0:0 7       /tmp/\xff/a").unwrap();
        assert_eq!(odd.path.as_os_str().as_encoded_bytes(), b"/tmp/\xff/a");
    }
}
