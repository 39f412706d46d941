//! Traces of mode 0600, of the user who called sudo, that are written while a recording continues. What other verbs write gets its name later
//! (`UnfinishedFile`).
//!
//! Another user may be able to write the directory, so its contents are not trusted. Written are only files created here, character
//! devices, and FIFOs of root or of this user. Symbolic links are not followed: as with perf, the link itself is renamed or replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use usdtrec_format::escape::shown;

use crate::old_file::{keep_old, with_suffix};
use crate::stream::{self, is_trusted};
use crate::sudo_user;
use crate::unfinished_file::folder_of;

/// Creates an empty trace of mode 0600. An existing file or link is renamed to `PATH.old`. A character device or FIFO is
/// opened instead, also through a link that root or this user owns.
///
/// Errors name the path.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let made = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => stream::open(path).and_then(|stream| match stream {
            Some(stream) if stream.is_terminal() => {
                Err(io::Error::other("is a terminal: traces are binary"))
            }
            Some(stream) => stream::refuse_open_file(&stream).map(|()| stream),
            None => keep_old(path).and_then(|()| create_new(path)),
        }),
        Err(_) => create_new(path),
    };
    made.map_err(|error| named(path, &error))
}

/// Opens a FIFO for writing; `None` if the path is not a FIFO.
///
/// Errors name the path: the FIFO belongs to another user, or has no reader.
pub(crate) fn fifo(path: &Path) -> io::Result<Option<File>> {
    let stream = stream::open(path).map_err(|error| named(path, &error))?;
    Ok(stream.filter(is_fifo))
}

/// Opens a trace to which names are appended. A link is followed only if root or this user owns it.
///
/// # Errors
/// The error of `open(2)`; it is not a regular file.
pub(crate) fn existing(path: &Path) -> io::Result<File> {
    let follow = match fs::symlink_metadata(path)? {
        found if found.is_symlink() && is_trusted(&found) => 0,
        _ => libc::O_NOFOLLOW,
    };
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | follow)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("expected a regular file"))
}

fn is_fifo(file: &File) -> bool {
    let metadata = file.metadata();
    metadata.is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Creates a file with `O_EXCL`, which does not follow a link that another user puts there in the meantime.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|file| sudo_user::give(&file, folder_of(path)).map(|()| file))
}

/// Removes a trace. It is no error if the file does not exist.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(path, &error)),
        _ => Ok(()),
    }
}

/// The path of a numbered trace.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &number.to_string())
}

/// The same error, which names the path.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", shown(path)))
}
