//! Finds files by path or by name: programs in `PATH`, and shared libraries as the dynamic linker does (ld.so(8)), in `LD_LIBRARY_PATH`,
//! `/etc/ld.so.cache` and the default directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;
use crate::elf::{ElfError, ObjectFile};
use crate::open_path;

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
        .or_else(|| library(name))
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

/// glibc's list of libraries, written by ldconfig(8).
const CACHE: &str = "/etc/ld.so.cache";
/// Magic at the start of the list (glibc, `sysdeps/generic/dl-cache.h`).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Size of the header, bytes: magic, number of entries (u32), size of the strings (u32), fields that are not used here.
const HEADER: usize = 48;
/// Size of an entry, bytes: flags (i32), offset of the name (u32), offset of the path (u32), fields that are not used here.
const ENTRY: usize = 24;
/// Default directories.
const DIRECTORIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The path of a library; `None` if it is not found. The file's contents are not checked.
pub(crate) fn library(name: &Path) -> Option<PathBuf> {
    let asked = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let asked = std::env::split_paths(&asked).filter(|dir| !dir.as_os_str().is_empty());
    let in_directory = |dir: PathBuf| Some(dir.join(name)).filter(|path| path.is_file());
    asked
        .into_iter()
        .find_map(in_directory)
        .or_else(|| in_list(&fs::read(CACHE).ok()?, name.as_os_str().as_bytes()))
        .or_else(|| {
            DIRECTORIES
                .map(PathBuf::from)
                .into_iter()
                .find_map(in_directory)
        })
}

/// Looks up a name in glibc's list. Of several entries, which are for different machines, the first existing file is returned.
fn in_list(list: &[u8], name: &[u8]) -> Option<PathBuf> {
    // A list in the older format may come before it.
    let at = list.windows(MAGIC.len()).position(|bytes| bytes == MAGIC)?;
    let list = list.get(at..)?;
    let word = |at: usize| {
        let bytes = list.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_ne_bytes(*bytes)).ok()
    };
    let text = |at: usize| list.get(at..)?.split(|byte| *byte == 0).next();
    let most = list.len().saturating_sub(HEADER) / ENTRY;
    let entries = 0..word(MAGIC.len())?.min(most);
    let mut paths = entries.filter_map(|index| {
        let entry = HEADER + index * ENTRY;
        (text(word(entry + 4)?)? == name).then(|| text(word(entry + 8)?))?
    });
    paths.find_map(|path| {
        let path = PathBuf::from(OsStr::from_bytes(path));
        path.is_file().then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of this machine knows libc, by whatever path.
    #[test]
    fn the_c_library_is_found() {
        let path = library(Path::new("libc.so.6")).unwrap();
        assert!(path.is_absolute() && path.is_file(), "{path:?}");
        assert_eq!(library(Path::new("libno-such-library.so.7")), None);
    }

    #[test]
    fn damaged_lists_find_nothing() {
        let mut list = MAGIC.to_vec();
        assert_eq!(in_list(&list, b"libc.so.6"), None);
        list.extend([0xff; 100]);
        assert_eq!(in_list(&list, b"libc.so.6"), None);
    }
}
