//! The user who called sudo: what is written for them in a folder of theirs is theirs.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use crate::unfinished_file::folder_of;

/// Gives a file that was created here to the user who called sudo, if the folder of its path is theirs. sudo's variables alone are not believed: whoever can
/// set them for root may be another user.
///
/// # Errors
/// The error of `fchown(2)`.
pub(crate) fn give(file: &File, path: &Path) -> io::Result<()> {
    let Some(user) = owner_of_folder(path) else {
        return Ok(());
    };
    fchown(file, Some(user.id), Some(user.group))
}

struct User {
    id: u32,
    group: u32,
}

fn owner_of_folder(path: &Path) -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let number = |name| env::var(name).ok()?.parse().ok();
    let user = User {
        id: number("SUDO_UID")?,
        group: number("SUDO_GID")?,
    };
    let folder = fs::metadata(folder_of(path)).ok()?;
    (user.id != 0 && folder.uid() == user.id).then_some(user)
}
