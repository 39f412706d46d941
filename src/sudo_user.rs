//! The user who called sudo: what is written for them in a folder of theirs is theirs.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Gives a file that was created in a folder to the user who called sudo, if the folder is theirs. sudo's variables alone are not believed: whoever can
/// set them for root may be another user.
///
/// # Errors
/// The error of `fchown(2)`.
pub(crate) fn give(file: &File, folder: &Path) -> io::Result<()> {
    let Some(user) = owner(folder) else {
        return Ok(());
    };
    fchown(file, Some(user.id), Some(user.group))
}

struct User {
    id: u32,
    group: u32,
}

fn owner(folder: &Path) -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let number = |name| env::var(name).ok()?.parse().ok();
    let user = User {
        id: number("SUDO_UID")?,
        group: number("SUDO_GID")?,
    };
    let folder = fs::metadata(folder).ok()?;
    (user.id != 0 && folder.uid() == user.id).then_some(user)
}
