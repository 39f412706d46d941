//! The user who called sudo: what is written for them in a folder of theirs is theirs, and what root's build-id cache gets, theirs gets, too.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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

fn owner(folder: &Path) -> Option<SudoUser> {
    let user = SudoUser::from_environment()?;
    let folder = fs::metadata(folder).ok()?;
    (folder.uid() == user.id).then_some(user)
}

/// A user other than root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SudoUser {
    /// User id.
    pub(crate) id: u32,
    group: u32,
}

impl SudoUser {
    /// The user of `SUDO_UID` and `SUDO_GID`. `None` if this process is not root's, or root called sudo.
    pub(crate) fn from_environment() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let number = |name| env::var(name).ok()?.parse().ok();
        let user = Self {
            id: number("SUDO_UID")?,
            group: number("SUDO_GID")?,
        };
        (user.id != 0).then_some(user)
    }

    /// This program, run with the user's rights and home, and with nothing of root's environment but `PATH` and `NO_COLOR`.
    ///
    /// # Errors
    /// As [`home`](Self::home).
    pub(crate) fn program(&self) -> io::Result<Command> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("usdtrec")
            .uid(self.id)
            .gid(self.group)
            .env_clear()
            .env("HOME", self.home()?)
            .envs(
                ["PATH", "NO_COLOR"]
                    .into_iter()
                    .filter_map(|name| Some((name, env::var_os(name)?))),
            );
        Ok(command)
    }

    /// The user's home, as the host's name services know it.
    ///
    /// # Errors
    /// `getent(1)` cannot be run, or it knows no such user or home.
    fn home(&self) -> io::Result<PathBuf> {
        let entry = Command::new("getent")
            .args(["passwd", &self.id.to_string()])
            .output()
            .map_err(|error| io::Error::new(error.kind(), format!("getent: {error}")))?;
        // passwd(5): name, password, user id, group id, comment, home, shell.
        let home = entry.stdout.split(|byte| *byte == b':').nth(5);
        home.filter(|home| home.starts_with(b"/"))
            .map(|home| PathBuf::from(OsString::from_vec(home.to_vec())))
            .ok_or_else(|| io::Error::other(format!("getent passwd {}: no home", self.id)))
    }
}
