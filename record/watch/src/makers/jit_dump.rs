//! A jitdump: a file that its process maps executable, so that its record shows where it is.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::DeviceNumber;
use usdtrec_buildid_cache::served::{Contents, Handle, Patience, Reader};
use usdtrec_format::perf::{Mmap, MmapFile};
use usdtrec_kernel::host::process::live_directory;

/// A mapping of a jitdump.
#[derive(Clone, Debug)]
pub(super) struct DumpMapping {
    path: PathBuf,
    inode: u64,
    device: DeviceNumber,
    /// First address.
    start: u64,
    /// Address after the last.
    end: u64,
}

impl DumpMapping {
    /// `None` of mappings of other files: a jitdump is called `jit-NUMBER.dump`.
    pub(super) fn from_mmap(map: &Mmap<'_>) -> Option<Self> {
        let name = map.path.rsplit(|byte| *byte == b'/').next()?;
        let number = name.strip_prefix(b"jit-")?.strip_suffix(b".dump")?;
        if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let MmapFile::Inode {
            major,
            minor,
            inode,
            ..
        } = map.file
        else {
            return None;
        };
        Some(Self {
            path: OsStr::from_bytes(map.path).into(),
            inode,
            device: DeviceNumber { major, minor },
            start: map.start,
            end: map.start.saturating_add(map.len),
        })
    }

    /// Opens the file that the process has mapped; of a process that has ended, the one at the path, if it is the same. `None` if it is not there.
    ///
    /// # Errors
    /// `TimedOut` if its file system does not answer.
    pub(super) fn open(&self, pid: i32) -> io::Result<Option<Contents>> {
        let Self { start, end, .. } = self;
        let Ok(below) = self.path.strip_prefix("/") else {
            return Ok(None);
        };
        let process = live_directory(pid);
        let views = [
            process.join(format!("map_files/{start:x}-{end:x}")),
            process.join("root").join(below),
            self.path.clone(),
        ];
        let reader = Reader {
            device: self.device,
            ..Reader::of_process(pid, Patience::Short)
        };
        for view in views {
            match self.open_at(&view, reader) {
                Ok(None) => {}
                Err(error) if error.kind() != io::ErrorKind::TimedOut => {}
                found => return found,
            }
        }
        Ok(None)
    }

    /// Opens the file at a path if it is the one. Nothing else is opened, which may block.
    fn open_at(&self, path: &Path, reader: Reader) -> io::Result<Option<Contents>> {
        let handle = Handle::of_path(path, reader)?;
        match handle.stat().id.inode == self.inode {
            true => handle.open().map(Some).map_err(io::Error::other),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
impl DumpMapping {
    /// A mapping of a file, which no process has at these addresses.
    pub(super) fn for_file(path: &Path, inode: u64) -> Self {
        Self {
            path: path.into(),
            inode,
            device: DeviceNumber::default(),
            start: 0,
            end: 0,
        }
    }
}
