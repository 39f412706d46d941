//! Outputs that are written front to back: character devices and FIFOs.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// Opens a character device or FIFO for writing; `None` for a file, a link to anything else, or nothing.
///
/// A FIFO of another user is refused, because that user could read the output. So are block devices and sockets, whose names would be
/// taken away from those who use them.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
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
    let Ok(handle) = rustix::fs::open(path, flags | follow, Mode::empty()) else {
        return Ok(None);
    };
    let handle = File::from(handle);
    let metadata = handle.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_char_device() && !kind.is_fifo() {
        return Ok(None);
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

/// Whether root or this user owns the file.
pub(crate) fn is_trusted(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}
