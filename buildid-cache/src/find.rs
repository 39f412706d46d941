//! Files by path or bare name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::CacheError;

/// The file that a name means, with all links resolved: a path; or a bare name, which is a file of the
/// working directory or else an executable in `PATH`.
///
/// # Errors
/// [`CacheError::NotFound`] for a bare name, [`CacheError::Io`] for a path.
pub fn resolve(name: &Path) -> Result<PathBuf, CacheError> {
    let bare =
        name.components().count() == 1 && !name.as_os_str().as_encoded_bytes().contains(&b'/');
    if !bare {
        return name.canonicalize().map_err(CacheError::io(name));
    }
    let here = name.is_file().then(|| name.to_owned());
    here.or_else(|| in_path(name))
        .and_then(|path| path.canonicalize().ok())
        .ok_or_else(|| CacheError::NotFound(name.to_owned()))
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
