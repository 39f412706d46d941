//! Whether a command can be started, before anything is written for it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Where `execvp(3)` looks for a name if there is no `PATH`.
const USUAL_PATH: &str = "/bin:/usr/bin";
/// Bytes of a script's first line that the kernel reads.
const FIRST_LINE: u64 = 256;

/// Looks for a program as `execvp(3)` does, and checks what `execve(2)` would refuse.
///
/// # Errors
/// The error of `execve(2)`.
pub(crate) fn check(program: &OsStr) -> io::Result<()> {
    if program.as_bytes().contains(&b'/') {
        return check_file(Path::new(program));
    }
    let list = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL_PATH));
    let mut refused = io::Error::from_raw_os_error(libc::ENOENT);
    for directory in std::env::split_paths(&list) {
        let directory = if directory.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            directory
        };
        match check_file(&directory.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = error,
            Err(_) => {}
        }
    }
    Err(refused)
}

fn check_file(path: &Path) -> io::Result<()> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?;
    match interpreter(path) {
        Some(interpreter) => {
            interpreter.metadata()?;
            Ok(accessat(
                CWD,
                &interpreter,
                Access::EXEC_OK,
                AtFlags::EACCESS,
            )?)
        }
        None => Ok(()),
    }
}

/// The interpreter that a script names in its first line. `None` of anything else, and of a file that cannot be read, which can be run.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    let file = File::open(path).ok()?;
    file.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let name = line
        .trim_ascii_start()
        .split(u8::is_ascii_whitespace)
        .next()?;
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_cannot_be_run_has_the_error_of_execve() {
        let directory = tempfile::tempdir().unwrap();
        let made = |name: &str, text: &str, mode| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            check(path.as_os_str()).map_err(|error| error.raw_os_error())
        };
        assert_eq!(made("script", "#! /bin/sh -e\n", 0o700), Ok(()));
        assert_eq!(made("plain", "true\n", 0o700), Ok(()));
        assert_eq!(made("data", "true\n", 0o600), Err(Some(libc::EACCES)));
        assert_eq!(
            made("orphan", "#!/nonexistent x\n", 0o700),
            Err(Some(libc::ENOENT))
        );
        let failed = |name: &str| check(OsStr::new(name)).unwrap_err().raw_os_error();
        assert_eq!(failed("/nonexistent"), Some(libc::ENOENT));
        assert_eq!(failed("/"), Some(libc::EACCES));
        assert_eq!(failed("no-such-program-anywhere"), Some(libc::ENOENT));
        assert!(check(OsStr::new("sh")).is_ok());
    }
}
