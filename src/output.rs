//! The trace file that `record` writes: the old one is kept, and only its owner can read the new one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Makes an empty file for a trace, mode 0600. A regular file that stands there is kept as `PATH.old`, as perf does.
///
/// Errors name the path.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let made = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => fs::rename(path, with_suffix(path, "old"))
            .and_then(|()| options.create_new(true).open(path)),
        // A device, or a link to one, is written as it is.
        Ok(_) => options.open(path),
        Err(_) => options.create_new(true).open(path),
    };
    made.map_err(|error| named(path, &error))
}

/// Removes a trace; one that is gone already is as good.
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

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
