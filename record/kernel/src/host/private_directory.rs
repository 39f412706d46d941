//! Directories that one user alone can access.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Creates a directory of this user if it does not exist.
///
/// # Errors
/// The error of `mkdir(2)`, or that of [`check`].
pub fn create(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check(path, rustix::process::geteuid().as_raw())
}

/// Refuses what is not a directory of this user alone: others could have created files there.
///
/// # Errors
/// `NotFound` if it does not exist; `PermissionDenied` if others can access it.
pub fn check(path: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is not a directory of user {user} alone (mode 0700)",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn directories_of_others_and_links_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = rustix::process::geteuid().as_raw();
        let path = folder.path().join("a");
        assert!(check(&path, own).is_err());
        create(&path).expect("a directory");
        create(&path).expect("it is there");
        assert!(check(&path, own + 1).is_err());
        let link = folder.path().join("link");
        symlink(&path, &link).expect("a link");
        assert!(check(&link, own).is_err());
        fs::set_permissions(&path, Permissions::from_mode(0o750)).expect("a mode");
        assert!(check(&path, own).is_err() && create(&path).is_err());
    }
}
