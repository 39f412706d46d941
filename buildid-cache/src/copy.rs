//! Hard links and copies of an open file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, SeekFrom as Seek, fstatfs, linkat, seek};
use rustix::io::Errno;

use crate::elf::ObjectFile;

/// Maximum size of a copy, bytes of data. Larger files are refused.
const MAX_COPIED: u64 = 4 << 30;

/// The type of overlayfs (statfs(2)).
const OVERLAYFS: u64 = 0x794c_7630;

/// Creates a hard link of an open file.
///
/// # Errors
/// Errors of the system calls. `CrossesDevices` for a file of overlayfs: the kernel would put a copy in its place, and processes that map it would continue with
/// the file before, in which no probe could be attached by its path.
pub(crate) fn link(file: &ObjectFile, path: &Path) -> io::Result<()> {
    // One that a helper reads is not of the cache's file system.
    let file = file.local().ok_or(io::ErrorKind::CrossesDevices)?;
    if fstatfs(file)?.f_type as u64 == OVERLAYFS {
        return Err(io::ErrorKind::CrossesDevices.into());
    }
    let by_number = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, by_number, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Copies an open file into an empty one. Holes are preserved, except of a file that a helper reads.
///
/// # Errors
/// Errors of the system calls; `FileTooLarge` for more than [`MAX_COPIED`] bytes of data; `TimedOut` if the file system does not answer.
pub(crate) fn copy(from: &ObjectFile, to: &mut File) -> io::Result<()> {
    match from.local() {
        Some(from) => copy_local(from, to),
        None if from.len() > MAX_COPIED => Err(too_large()),
        None => io::copy(&mut from.reader().take(from.len()), to).map(drop),
    }
}

fn too_large() -> io::Error {
    let max = MAX_COPIED >> 30;
    let message = format!("expected at most {max} GiB to copy into the cache");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

fn copy_local(from: &File, to: &mut File) -> io::Result<()> {
    let len = from.metadata()?.len();
    let (mut at, mut room) = (0, MAX_COPIED);
    while let Some((begin, end)) = data(from, at, len)? {
        room = room.checked_sub(end - begin).ok_or_else(too_large)?;
        (&mut &*from).seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        io::copy(&mut from.take(end - begin), to)?;
        at = end;
    }
    to.set_len(len)
}

/// Begin and end of the first data extent at or after an offset; `None` if there is no data before `len`.
fn data(file: &File, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= len {
        return Ok(None);
    }
    let begin = match seek(file, Seek::Data(at)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not support holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((at, len))),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, Seek::Hole(begin))?.min(len);
    Ok((begin < end).then_some((begin, end)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;

    #[test]
    fn holes_stay_holes() {
        let mut from = tempfile::tempfile().unwrap();
        from.write_all(b"begin").unwrap();
        from.write_all_at(b"middle", 5 << 20).unwrap();
        from.set_len(1 << 40).unwrap();
        let mut to = tempfile::tempfile().unwrap();
        copy_local(&from, &mut to).unwrap();
        let copied = to.metadata().unwrap();
        assert_eq!(copied.len(), 1 << 40);
        assert!(copied.blocks() * 512 <= 1 << 20, "{}", copied.blocks());
        let mut bytes = [0; 6];
        to.read_exact_at(&mut bytes, 5 << 20).unwrap();
        assert_eq!(&bytes, b"middle");
        to.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"begin\0");
    }
}
