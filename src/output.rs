//! The trace file that `record` writes: the old one is kept, and only its owner can read the new one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Makes an empty file for a trace, mode 0600. A regular file that stands there is kept as `PATH.old`, as perf does.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    let failed = || format!("cannot write {}", path.display());
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::rename(path, old(path)).with_context(failed)?,
        Ok(metadata) if metadata.is_dir() => {
            return Err(io::Error::from(io::ErrorKind::IsADirectory)).with_context(failed);
        }
        // A device or a link to one is written as it is.
        Ok(_) => {
            return OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .with_context(failed);
        }
        Err(_) => {}
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(failed)
}

/// Where an earlier trace is kept.
fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}
