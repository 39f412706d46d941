//! Outputs that are written front to back: character devices, FIFOs, and what this process has open.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// Links that are followed to a descriptor of this process, as in Linux.
const MAX_LINKS: usize = 40;

/// Opens a character device or FIFO for writing; `None` for a file, a link to anything else, or nothing. `/dev/stdout` and `/dev/stderr`
/// are what this process has open there, also a file or socket.
///
/// A FIFO of another user is refused, because that user could read the output. So are block devices and sockets, whose names would be
/// taken away from those who use them, and files of other descriptors of this process, whose links are not ours to replace.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    let own = own_descriptor(path);
    let standard = match own {
        Some(1) => Some(io::stdout().as_fd().try_clone_to_owned()),
        Some(2) => Some(io::stderr().as_fd().try_clone_to_owned()),
        _ => None,
    };
    if let Some(standard) = standard {
        return Ok(Some(standard?.into()));
    }
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(None);
    };
    let kind = found.file_type();
    if kind.is_block_device() || kind.is_socket() {
        let what = if kind.is_socket() {
            "a socket"
        } else {
            "a block device"
        };
        let message = format!("expected a file, a FIFO or a character device, found {what}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if found.is_symlink() && !is_trusted(&found) {
        return Ok(None);
    }
    // The checks and the later open use this handle, as the path could be exchanged in between.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let follow = if found.is_symlink() {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let handle = match rustix::fs::open(path, flags | follow, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(error) if own.is_some() => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let metadata = handle.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_char_device() && !kind.is_fifo() {
        return match own {
            Some(number) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "is descriptor {number} of this process, neither a FIFO nor a character device: give the path of a file, or -o -"
                ),
            )),
            None => Ok(None),
        };
    }
    if kind.is_fifo() && !is_trusted(&metadata) {
        let owner = metadata.uid();
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "is a FIFO of user {owner}, who could read the output; write to it as that user, or with -o - > FIFO"
            ),
        ));
    }
    let opened = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let mut options = OpenOptions::new();
    options.write(true);
    if kind.is_fifo() {
        // Do not wait for a reader. Opening for reading, too, would hide that the last reader closed it.
        options.custom_flags(libc::O_NONBLOCK);
    } else {
        options.read(true);
    }
    let stream = options.open(opened).map_err(|error| {
        if error.raw_os_error() == Some(libc::ENXIO) && kind.is_fifo() {
            let what = "is a FIFO without a reader: start its reader first";
            return io::Error::new(error.kind(), what);
        }
        error
    })?;
    if kind.is_fifo() {
        // What is written waits for the reader.
        rustix::fs::fcntl_setfl(&stream, OFlags::empty())?;
    }
    Ok(Some(stream))
}

/// Refuses what a trace cannot be written to besides files of its own, FIFOs and character devices: an open file of this process.
#[cfg(feature = "record")]
pub(crate) fn refuse_open_file(stream: &File) -> io::Result<()> {
    let kind = stream.metadata()?.file_type();
    if kind.is_fifo() || kind.is_char_device() {
        return Ok(());
    }
    let what = "names an open file of this process, in which a trace would not be alone: give the path of a file, or record with -o -";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The descriptor of this process that a path names, itself or through links that root or this user owns.
fn own_descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let (folder, name) = (path.parent()?, path.file_name()?);
        if is_descriptor_folder(folder) {
            return name.to_str()?.parse().ok();
        }
        let target = linked(&path)?;
        path = folder.join(target);
    }
    None
}

/// Where a link that root or this user owns leads to; `None` of anything else.
fn linked(path: &Path) -> Option<PathBuf> {
    let found = fs::symlink_metadata(path).ok()?;
    let is_followed = found.is_symlink() && is_trusted(&found);
    is_followed.then(|| fs::read_link(path).ok())?
}

/// Whether a folder has the descriptors of this process.
fn is_descriptor_folder(folder: &Path) -> bool {
    let named = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];
    named.iter().any(|own| folder == Path::new(own))
        || folder == Path::new(&format!("/proc/{}/fd", std::process::id()))
}

/// Whether root or this user owns the file.
pub(crate) fn is_trusted(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_descriptors_of_this_process_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let linked_to = |name: &str, target: &str| {
            let path = folder.path().join(name);
            symlink(target, &path).unwrap();
            path
        };
        let own = |path: &str| own_descriptor(Path::new(path));
        assert_eq!(own("/proc/self/fd/1"), Some(1));
        assert_eq!(own(&format!("/proc/{}/fd/7", std::process::id())), Some(7));
        assert_eq!(own("/dev/fd/63"), Some(63));
        assert_eq!(own("/proc/self/fd/out"), None);
        assert_eq!(own("/proc/self/maps"), None);
        assert_eq!(own("missing"), None);
        linked_to("one", "/proc/self/fd/2");
        assert_eq!(own_descriptor(&linked_to("two", "one")), Some(2));
        assert_eq!(own_descriptor(&linked_to("loop", "loop")), None);
    }

    #[test]
    fn a_link_to_a_file_that_is_open_here_is_not_ours_to_replace() {
        let file = tempfile::tempfile().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &path).unwrap();
        let refused = open(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        fs::remove_file(&path).unwrap();
        symlink("/proc/self/fd/2", &path).unwrap();
        assert!(open(&path).unwrap().is_some());
    }
}
