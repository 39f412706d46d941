//! Where the separate file with a program's symbols and debugging information is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::build_id::BuildId;

/// Directory of separate files (GDB manual, "Debugging Information in Separate Files").
const ROOT: &str = "/usr/lib/debug";

/// The path of the separate file of a build-id: `/usr/lib/debug/.build-id/xx/yyyy.debug`.
#[must_use]
pub fn debug_file_by_build_id(id: BuildId) -> PathBuf {
    let text = id.to_string();
    let (first, rest) = text.split_at_checked(2).unwrap_or((&text, ""));
    let dir = Path::new(ROOT).join(".build-id").join(first);
    dir.join(format!("{rest}.debug"))
}

/// The paths of the separate file that a program names in `.gnu_debuglink`, in the order in which GDB tries them; nothing if the name is not that of
/// a file in a directory.
#[must_use]
pub fn debug_files_by_link(program: &Path, name: &[u8]) -> Vec<PathBuf> {
    let is_name = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    let Some(dir) = program.parent().filter(|_| is_name) else {
        return Vec::new();
    };
    let name = OsStr::from_bytes(name);
    let mut found = vec![dir.join(name), dir.join(".debug").join(name)];
    if let Ok(dir) = dir.strip_prefix("/") {
        found.push(Path::new(ROOT).join(dir).join(name));
    }
    found
}

/// The paths of the file with the split units of a program (`.dwo`) that a skeleton names, which was compiled in a directory: where it was written, and
/// beside the program, for a build that was moved.
#[must_use]
pub fn split_debug_files(program: &Path, name: &[u8], directory: &[u8]) -> Vec<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let compiled = Path::new(OsStr::from_bytes(directory)).join(name);
    let mut found = Vec::from_iter(compiled.is_absolute().then_some(compiled));
    if let Some(beside) = program.parent() {
        let names = [Some(name), name.file_name().map(Path::new)];
        found.extend(names.into_iter().flatten().map(|name| beside.join(name)));
    }
    found
}

/// The path of the package of a program's `.dwo` files: `PROGRAM.dwp`.
#[must_use]
pub fn split_debug_package(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_units_are_where_they_were_compiled_or_beside_the_program() {
        let program = Path::new("/srv/app");
        assert_eq!(
            split_debug_files(program, b"out/a.dwo", b"/build"),
            [
                Path::new("/build/out/a.dwo"),
                Path::new("/srv/out/a.dwo"),
                Path::new("/srv/a.dwo"),
            ]
        );
        // Nothing says where a relative path began.
        let found = split_debug_files(program, b"a.dwo", b"");
        assert_eq!(found, [Path::new("/srv/a.dwo"); 2]);
        assert_eq!(split_debug_package(program), Path::new("/srv/app.dwp"));
    }

    #[test]
    fn paths_are_gdbs() {
        let id: BuildId = "abcdef".parse().unwrap();
        let path = Path::new("/usr/lib/debug/.build-id/ab/cdef.debug");
        assert_eq!(debug_file_by_build_id(id), path);
        let id: BuildId = "ab".parse().unwrap();
        let path = Path::new("/usr/lib/debug/.build-id/ab/.debug");
        assert_eq!(debug_file_by_build_id(id), path);
        assert_eq!(
            debug_files_by_link(Path::new("/usr/bin/app"), b"app.debug"),
            [
                Path::new("/usr/bin/app.debug"),
                Path::new("/usr/bin/.debug/app.debug"),
                Path::new("/usr/lib/debug/usr/bin/app.debug"),
            ]
        );
        for name in [&b""[..], b"..", b".", b"../etc/passwd", b"/etc/passwd"] {
            assert!(debug_files_by_link(Path::new("/usr/bin/app"), name).is_empty());
        }
    }
}
