//! Finds files by path or by name.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;
use crate::elf::{ElfError, ObjectFile};
use crate::{library, open_path};

/// Finds a file by name. A name with a `/` is a path. Other names are looked up in the working directory, as executables in `PATH`, and
/// as shared libraries where the dynamic linker finds them.
///
/// # Errors
/// [`CacheError::NotFound`] for a name without a `/`.
pub fn locate(name: &Path) -> Result<PathBuf, CacheError> {
    let is_bare = name.components().count() == 1 && !name.as_os_str().as_bytes().contains(&b'/');
    if !is_bare || name.is_file() {
        return Ok(name.to_owned());
    }
    in_path(name)
        .or_else(|| library::find(name))
        .ok_or_else(|| CacheError::NotFound(name.to_owned()))
}

/// Finds a file as [`locate`] does, and opens it.
///
/// # Errors
/// [`CacheError::NotFound`], [`CacheError::Io`], [`CacheError::Elf`].
pub fn open(name: &Path) -> Result<ObjectFile, CacheError> {
    let path = locate(name)?;
    ObjectFile::open(&path).map_err(|source| match source {
        ElfError::Io(source) => CacheError::Io { path, source },
        source => CacheError::Elf { path, source },
    })
}

/// Finds a file as [`locate`] does, and resolves the links in its path, except for links of a process below `/proc` (`/proc/PID/root`,
/// `exe`, …).
///
/// # Errors
/// [`CacheError::NotFound`]; [`CacheError::Io`] if the file does not exist.
pub fn resolve(name: &Path) -> Result<PathBuf, CacheError> {
    let path = locate(name)?;
    open_path::resolved(&path).map_err(CacheError::io(path))
}

/// Finds an executable file in the folders of `PATH`.
#[must_use]
pub fn in_path(name: &Path) -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH")?;
    std::env::split_paths(&dirs)
        .map(|dir| dir.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
}
