//! The directory in which recorders note what must be undone if they are killed. It is accessible to root only.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::private_directory;

/// Its path.
pub(crate) const PATH: &str = "/run/usdtrec";

/// Creates the directory if it does not exist.
///
/// # Errors
/// Those of [`private_directory::create`].
pub(crate) fn create() -> io::Result<PathBuf> {
    private_directory::create(PATH.as_ref())?;
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
/// Those of [`private_directory::check`].
pub(crate) fn check() -> io::Result<()> {
    private_directory::check(PATH.as_ref(), 0)
}
