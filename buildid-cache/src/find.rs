//! Files by path or bare name.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;
use crate::elf::{ElfError, ObjectFile};
use crate::{library, reach};

/// The path of the file that a name means: a path, which has a `/`; or a bare name, which is a file of the working
/// directory, an executable in `PATH`, or a shared library where the dynamic linker looks for it.
///
/// # Errors
/// [`CacheError::NotFound`] for a bare name.
pub fn locate(name: &Path) -> Result<PathBuf, CacheError> {
    let is_bare = name.components().count() == 1 && !name.as_os_str().as_bytes().contains(&b'/');
    if !is_bare || name.is_file() {
        return Ok(name.to_owned());
    }
    in_path(name)
        .or_else(|| library::find(name))
        .ok_or_else(|| CacheError::NotFound(name.to_owned()))
}

/// Opens the file that a name means, as [`locate`] finds it.
///
/// # Errors
/// [`CacheError::NotFound`] for a bare name, [`CacheError::Io`], [`CacheError::Elf`].
pub fn open(name: &Path) -> Result<ObjectFile, CacheError> {
    let path = locate(name)?;
    ObjectFile::open(&path).map_err(|source| match source {
        ElfError::Io(source) => CacheError::Io { path, source },
        source => CacheError::Elf { path, source },
    })
}

/// The path of the existing file that a name means, with links resolved; those of a process below `/proc`
/// (`/proc/PID/root`, `exe`, …) stay as they are.
///
/// # Errors
/// [`CacheError::NotFound`] for a bare name, [`CacheError::Io`] for a path.
pub fn resolve(name: &Path) -> Result<PathBuf, CacheError> {
    let path = locate(name)?;
    reach::resolved(&path).map_err(CacheError::io(path))
}

fn in_path(name: &Path) -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH")?;
    std::env::split_paths(&dirs)
        .map(|dir| dir.join(name))
        .find(|path| {
            path.metadata()
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
}
