//! The file that an output of the same name leaves as `PATH.old`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use usdtrec_format::escape::shown;

/// Renames a file, or a link itself, to `PATH.old`.
pub(crate) fn keep_old(path: &Path) -> io::Result<()> {
    let old = with_suffix(path, "old");
    fs::rename(path, &old).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::IsADirectory => ": move that directory away",
            _ => "",
        };
        let what = format!("cannot rename it to {}: {error}{advice}", shown(&old));
        io::Error::new(error.kind(), what)
    })
}

/// A path with a point and a suffix at its end.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// The path, or one with a number from 2 on if there is a file of its name: after the wall clock was set back, files have the times of earlier ones.
pub(crate) fn unused(path: PathBuf) -> PathBuf {
    let is_unused = |path: &PathBuf| path.symlink_metadata().is_err();
    if is_unused(&path) {
        return path;
    }
    let mut numbered = (2_u64..).map(|number| with_suffix(&path, &number.to_string()));
    numbered.find(is_unused).unwrap_or_else(|| path.clone())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_earlier_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.20261123T120000Z");
        for expected in [
            "trace.20261123T120000Z",
            "trace.20261123T120000Z.2",
            "trace.20261123T120000Z.3",
        ] {
            let found = unused(path.clone());
            assert_eq!(found, folder.path().join(expected));
            fs::write(found, "a trace").unwrap();
        }
        // A link that leads nowhere is there, too.
        fs::remove_file(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert_eq!(unused(path), folder.path().join("trace.20261123T120000Z.4"));
    }
}
