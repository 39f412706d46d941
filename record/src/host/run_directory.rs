//! The directory in which recorders note what must be undone if they are killed. It is accessible to root only.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

/// Its path.
pub(crate) const PATH: &str = "/run/usdtrec";

/// Creates the directory if it does not exist.
///
/// # Errors
/// The error of `mkdir(2)`, or that of [`check`].
pub(crate) fn create() -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(PATH) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check()?;
    Ok(PathBuf::from(PATH))
}

/// Locks the directory until the file is closed, against other threads and recorders, for who removes what recordings left.
///
/// # Errors
/// Those of [`check`], `open(2)` and `flock(2)`.
pub(crate) fn lock() -> io::Result<File> {
    check()?;
    let directory = File::open(PATH)?;
    directory.lock()?;
    Ok(directory)
}

/// The same, unless somebody has it locked.
///
/// # Errors
/// Those of [`lock`]; `WouldBlock` if it is locked.
pub(crate) fn try_lock() -> io::Result<File> {
    check()?;
    let directory = File::open(PATH)?;
    directory.try_lock()?;
    Ok(directory)
}

/// Refuses the directory if others than root could have created files there.
///
/// # Errors
/// `NotFound` if it does not exist; `PermissionDenied` if others can access it.
pub(crate) fn check() -> io::Result<()> {
    let metadata = fs::symlink_metadata(PATH)?;
    if metadata.is_dir() && metadata.uid() == 0 && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{PATH} is not a directory of root's alone (mode 0700)"),
    ))
}
