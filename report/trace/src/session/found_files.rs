//! The files that paths name: files, directories of files, and globs.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use usdtrec_format::trace::{JoinError, NamedTrace, ReadError, SharedHeads, Trace};

use crate::error::ReportError;

/// Files that are opened at once.
const AT_ONCE: usize = 64;
/// Files up to which each is open all the time.
const MAX_OPEN: usize = 256;
/// Files of a trace at most.
const MAX_FILES: usize = 1 << 20;
/// The first bytes of a trace, in both byte orders.
const MAGICS: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// The files that paths name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundFiles {
    /// Each may be a directory of `perf record --threads`.
    pub(crate) traces: Vec<PathBuf>,
    /// Files in directories and of globs that are no traces or have a name `*.old`, and of several files those that are empty.
    pub(crate) left_out: Vec<PathBuf>,
}

impl FoundFiles {
    /// Looks for the files. What a path names is read when it is opened.
    ///
    /// # Errors
    /// [`ReportError::Read`] if a directory cannot be read or has no traces, or no file has a name of a glob.
    pub(crate) fn find(paths: &[PathBuf]) -> Result<Self, ReportError> {
        let mut found = Self::default();
        for path in paths {
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => found.add_directory(path)?,
                Ok(_) => found.traces.push(path.clone()),
                // The error of a path that is no glob is that of opening it.
                Err(_) => found.add_glob(path)?,
            }
        }
        if found.traces.len() > MAX_FILES {
            let expected = format!("at most {MAX_FILES} files");
            return Err(expected_found(expected, found.traces.len()).into());
        }
        if found.traces.len() > 1 {
            // A recorder that was killed may not have written its last one.
            let empty = |path: &mut PathBuf| {
                fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
            };
            let empty: Vec<PathBuf> = found.traces.extract_if(.., empty).collect();
            found.left_out.extend(empty);
        }
        Ok(found)
    }

    fn add_directory(&mut self, path: &Path) -> Result<(), ReportError> {
        if path.join("data").is_file() {
            self.traces.push(path.to_owned());
            return Ok(());
        }
        let open = |source| ReadError::Open {
            path: path.to_owned(),
            source,
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(open)? {
            files.push(entry.map_err(open)?.path());
        }
        files.sort_unstable();
        let before = self.traces.len();
        self.add_traces(files);
        if self.traces.len() == before {
            let expected = "a directory with traces, or one of perf record --threads, which has a file \"data\"";
            return Err(in_file(
                path,
                expected_found(
                    expected,
                    "a directory without a trace and without the file \"data\"",
                ),
            ));
        }
        Ok(())
    }

    fn add_glob(&mut self, path: &Path) -> Result<(), ReportError> {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        let files = pattern.and_then(|pattern| glob::glob(pattern).ok());
        let Some(files) = files else {
            self.traces.push(path.to_owned());
            return Ok(());
        };
        let before = self.traces.len();
        self.add_traces(files.filter_map(Result::ok).collect());
        if self.traces.len() == before {
            let found = "no file of such a name that is a trace";
            return Err(in_file(
                path,
                expected_found("a file, or a glob of files", found),
            ));
        }
        Ok(())
    }

    /// Adds those of the files that are traces.
    fn add_traces(&mut self, files: Vec<PathBuf>) {
        for file in files {
            let is_directory_of_perf = || file.join("data").is_file();
            // What a recorder renamed, because it was in the way.
            let is_old = file.extension().is_some_and(|extension| extension == "old");
            if !is_old && (is_trace(&file) || is_directory_of_perf()) {
                self.traces.push(file);
            } else if file.is_file() {
                self.left_out.push(file);
            }
        }
    }
}

/// Whether a file begins as a trace.
fn is_trace(path: &Path) -> bool {
    let mut first = [0; 8];
    // A FIFO would block.
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok())
        && MAGICS.contains(&&first)
}

/// Opens files as one trace.
///
/// # Errors
/// The errors of opening one of them, or of putting them together.
pub(crate) fn open_together(files: &[PathBuf]) -> Result<Trace, ReportError> {
    if let [only] = files {
        return Ok(Trace::open(only)?);
    }
    let heads = SharedHeads::default();
    let mut traces = Vec::with_capacity(files.len());
    for some in files.chunks(AT_ONCE) {
        let opened: Vec<Result<NamedTrace, ReportError>> = some
            .par_iter()
            .map(|path| open_one(path, &heads, files.len() > MAX_OPEN))
            .collect();
        for trace in opened {
            traces.push(trace?);
        }
    }
    Trace::join(traces).map_err(|error: JoinError| error.into())
}

fn open_one(path: &Path, heads: &SharedHeads, close: bool) -> Result<NamedTrace, ReportError> {
    let mut trace = Trace::open_sharing(path, heads).map_err(|error| in_file(path, error))?;
    if close {
        let closed = trace.close_between_reads(path);
        closed.map_err(|source| ReadError::Open {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(NamedTrace {
        path: path.to_owned(),
        trace,
    })
}

/// An error with its file, unless it names it.
fn in_file(path: &Path, error: ReadError) -> ReportError {
    match error {
        error @ ReadError::Open { .. } => error.into(),
        error => ReportError::ReadOne {
            path: path.to_owned(),
            error,
        },
    }
}

fn expected_found(expected: impl ToString, found: impl ToString) -> ReadError {
    ReadError::Format {
        offset: 0,
        expected: expected.to_string(),
        found: found.to_string(),
    }
}

/// What a list of paths is called: the first one, and how many more there are.
pub(crate) fn name(paths: &[PathBuf]) -> PathBuf {
    match paths {
        [] => PathBuf::new(),
        [only] => only.clone(),
        [first, others @ ..] => {
            let mut name = first.clone().into_os_string();
            name.push(format!(" and {} more", others.len()));
            name.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        folder
    }

    #[test]
    fn directories_and_globs_have_the_traces_in_them() {
        let folder = folder_with(&[
            ("t.1", b"PERFILE2."),
            ("t.2", b"PERFILE2."),
            ("t.old", b"PERFILE2."),
            ("t.svg", b"<svg/>"),
            ("other", b"PERFILE2."),
        ]);
        let path = |name: &str| folder.path().join(name);
        let all = FoundFiles::find(&[folder.path().to_owned()]).unwrap();
        assert_eq!(all.traces, ["other", "t.1", "t.2"].map(path));
        assert_eq!(all.left_out, ["t.old", "t.svg"].map(path));
        let some = FoundFiles::find(&[path("t.*"), path("other")]).unwrap();
        assert_eq!(some.traces, ["t.1", "t.2", "other"].map(path));
        assert!(FoundFiles::find(&[path("x.*")]).is_err());
        // A path that is there is no glob.
        fs::write(path("a[1]"), "").unwrap();
        let one = FoundFiles::find(&[path("a[1]")]).unwrap();
        assert_eq!(one.traces, [path("a[1]")]);
        let both = FoundFiles::find(&[path("a[1]"), path("t.1")]).unwrap();
        assert_eq!(
            (both.traces, both.left_out),
            (vec![path("t.1")], vec![path("a[1]")])
        );
    }

    #[test]
    fn a_directory_of_perf_is_one_trace() {
        let folder = folder_with(&[("data", b"PERFILE2."), ("data.0", b"PERFILE2.")]);
        let found = FoundFiles::find(&[folder.path().to_owned()]).unwrap();
        assert_eq!(found.traces, [folder.path()]);
        let empty = tempfile::tempdir().unwrap();
        let error = FoundFiles::find(&[empty.path().to_owned()]).unwrap_err();
        assert!(
            error.to_string().contains("a directory without a trace"),
            "{error}"
        );
    }
}
