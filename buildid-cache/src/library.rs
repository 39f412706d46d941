//! Where the dynamic linker finds a shared library (ld.so(8)): `LD_LIBRARY_PATH`, its cache, its own directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// glibc's list of libraries, made by ldconfig(8).
const CACHE: &str = "/etc/ld.so.cache";
/// Begins the list (glibc, `sysdeps/generic/dl-cache.h`).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Bytes of its header: magic, count (u32), bytes of names (u32), and what we do not read.
const HEADER: usize = 48;
/// Bytes of an entry: flags (i32), offset of the name (u32), offset of the path (u32), and what we do not read.
const ENTRY: usize = 24;
/// Directories that are looked in without the list.
const DIRECTORIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The path of a library; `None` if there is no such library. The file need not be one.
pub(crate) fn find(name: &Path) -> Option<PathBuf> {
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

/// Looks a name up in the linker's list. Of several, which are for other machines, the first file that exists.
fn in_list(list: &[u8], name: &[u8]) -> Option<PathBuf> {
    // A list of the older form stands before it.
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
        let path = find(Path::new("libc.so.6")).unwrap();
        assert!(path.is_absolute() && path.is_file(), "{path:?}");
        assert_eq!(find(Path::new("libno-such-library.so.7")), None);
    }

    #[test]
    fn damaged_lists_find_nothing() {
        let mut list = MAGIC.to_vec();
        assert_eq!(in_list(&list, b"libc.so.6"), None);
        list.extend([0xff; 100]);
        assert_eq!(in_list(&list, b"libc.so.6"), None);
    }
}
