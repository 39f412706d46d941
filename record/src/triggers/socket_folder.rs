//! The folder with the sockets of recorders that write files on request: root's, or that of a user, accessible to nobody else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use usdtrec_attach::engine::Owner;
use usdtrec_kernel::host::run_directory;
use usdtrec_kernel::host::run_directory::check_private;

/// Ending of the names of sockets, after the recorder.
const SUFFIX: &str = ".sock";
/// Folders of users.
const USERS: &str = "/run/user";
/// The folder in that of a user.
const NAME: &str = "usdtrec";

/// Creates the folder of this user if it does not exist.
///
/// # Errors
/// The errors of [`run_directory::create_private`], and of [`check_private`] for the folder that it is in.
pub(super) fn create() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return run_directory::create();
    }
    let parent = Path::new(USERS).join(user.as_raw().to_string());
    check_private(&parent, user.as_raw())?;
    let folder = parent.join(NAME);
    run_directory::create_private(&folder)?;
    Ok(folder)
}

/// The folders in which sockets are looked for: that of this user; for root and one recorder those of all users, too.
pub(super) fn existing(is_of_one: bool) -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    let of_user = |folder: PathBuf, user: u32| {
        let folder = folder.join(NAME);
        check_private(&folder, user).is_ok().then_some(folder)
    };
    if !user.is_root() {
        let folder = Path::new(USERS).join(user.as_raw().to_string());
        return of_user(folder, user.as_raw()).into_iter().collect();
    }
    let own = run_directory::check().is_ok();
    let own = own.then(|| PathBuf::from(run_directory::PATH));
    let users = is_of_one.then(|| fs::read_dir(USERS).ok()).flatten();
    let users = users.into_iter().flatten().flatten().filter_map(|entry| {
        let user = entry.file_name().to_str()?.parse().ok()?;
        of_user(entry.path(), user)
    });
    own.into_iter().chain(users).collect()
}

/// The socket of a recorder.
pub(super) fn socket(folder: &Path, recorder: &Owner) -> PathBuf {
    folder.join(format!("{recorder}{SUFFIX}"))
}

/// The recorder whose socket has this name.
pub(super) fn recorder(name: &str) -> Option<Owner> {
    Owner::parse(name.strip_suffix(SUFFIX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_have_the_recorder() {
        let own = Owner::of_this_process().expect("this process");
        let path = socket(Path::new("/run/usdtrec"), &own);
        let name = path.file_name().and_then(|name| name.to_str());
        assert_eq!(name.and_then(recorder), Some(own));
        for other in [
            "usdtrec_1_2_3.sites",
            "usdtrec_1_2.sock",
            "record-1.sock",
            ".sock",
        ] {
            assert_eq!(recorder(other), None, "{other}");
        }
    }
}
