//! Programs that a test writes and runs.
//!
//! Another process writes them: what this process has open for writing is open in each process that another test forks meanwhile, too, and
//! execve(2) fails with `ETXTBSY` until that one runs its own program.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Copies a program.
#[track_caller]
pub(crate) fn copy_program(from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) {
    let copy = Command::new("cp").arg("--").arg(from).arg(to).status();
    assert!(copy.is_ok_and(|status| status.success()), "no copy");
}

/// Writes a program that everybody may run.
#[track_caller]
pub(crate) fn write_program(path: &Path, bytes: &[u8]) {
    let mut copy = Command::new("cp")
        .args([OsStr::new("--"), OsStr::new("/dev/stdin"), path.as_os_str()])
        .stdin(Stdio::piped())
        .spawn()
        .expect("cp");
    let mut input = copy.stdin.take().expect("its input");
    input.write_all(bytes).expect("a reader");
    drop(input);
    assert!(copy.wait().is_ok_and(|status| status.success()), "no file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our file");
}

/// A path as an option of a command line has it.
pub(crate) fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
