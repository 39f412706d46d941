//! A test's own place: a temporary directory with a build-id cache, in which the binary runs.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;
use usdtrec_testing::{note_directory, waiting};

use super::own_provider::OwnProvider;
use super::{Event, Finished, run, skip};

/// A temporary directory, removed at the end.
#[derive(Debug)]
pub(crate) struct Lab {
    directory: TempDir,
    /// Whether the binary under test finds what the lab has at `/run/usdtrec`.
    has_own_notes: bool,
    /// The providers that its programs have to themselves.
    providers: Mutex<Vec<OwnProvider>>,
}

impl Lab {
    /// For a test that needs no privileges.
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("usdtrec-test-")
            .tempdir()
            .expect("a temporary directory");
        note_directory(directory.path());
        Self {
            directory,
            has_own_notes: false,
            providers: Mutex::default(),
        }
    }

    /// For a test that records: without root's rights it is skipped.
    #[track_caller]
    pub(crate) fn privileged() -> Self {
        if !is_root() {
            skip("recording needs root");
        }
        Self::new()
    }

    /// The same with an own `/run/usdtrec`, of which other tests' recorders and `doctor` know nothing.
    #[track_caller]
    pub(crate) fn with_own_notes() -> Self {
        let mut lab = Self::privileged();
        DirBuilder::new()
            .mode(0o700)
            .create(lab.notes())
            .expect("a new directory");
        lab.has_own_notes = true;
        lab
    }

    /// Its own `/run/usdtrec`.
    pub(crate) fn notes(&self) -> PathBuf {
        self.file("notes")
    }

    /// Waits until no other program of any test run on this host has the provider, and keeps it until the lab ends.
    pub(crate) fn own_provider(&self, name: &str) {
        let provider = OwnProvider::wait_for(name);
        let mut providers = self
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        providers.push(provider);
    }

    /// Its directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The build-id cache in it.
    pub(crate) fn cache(&self) -> PathBuf {
        self.file("cache")
    }

    /// The binary under test with the cache of this lab, to be run in it.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        const WITH_NOTES: &str =
            "mkdir -p -m 0700 /run/usdtrec && mount --bind \"$0\" /run/usdtrec && exec \"$@\"";
        let program = env!("CARGO_BIN_EXE_usdtrec");
        if !self.has_own_notes {
            return self.at_home(Path::new(program), arguments);
        }
        let notes = self.notes().display().to_string();
        let mut command = self.at_home(
            Path::new("unshare"),
            ["--mount", "sh", "-c", WITH_NOTES, &notes, program],
        );
        command.args(arguments);
        command
    }

    /// A program that has this lab as current directory and home.
    pub(crate) fn at_home<S: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env_remove("XDG_CONFIG_HOME")
            // Texts are those of a pipe, or of a terminal that the test makes; a test of pagers sets its own.
            .env_remove("COLUMNS")
            .env_remove("USDTREC_PAGER")
            .env("PAGER", "cat")
            .env("PERF_BUILDID_DIR", self.cache());
        command
    }

    /// Runs the binary under test to its end.
    pub(crate) fn usdtrec<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Finished {
        run(self.command(arguments))
    }

    /// The events of a trace, as `script --format json` gives them.
    #[track_caller]
    pub(crate) fn events(&self, trace: &str) -> Vec<Event> {
        let script = self
            .usdtrec(["script", "--format", "json", "-i", trace])
            .success();
        Event::parse_lines(&script.stdout)
    }
}

/// Whether we have root's rights.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Skips the calling test where a program is not installed that it needs.
#[track_caller]
pub(crate) fn need_tool(name: &str) {
    if find_tool(name).is_none() {
        skip(&format!("{name} is not installed (./.ci/run installs it)"));
    }
}

/// Skips the test if the program cannot export to Parquet.
#[track_caller]
pub(crate) fn need_parquet() {
    if !cfg!(feature = "parquet") {
        skip("usdtrec is built without feature parquet (./.ci/run builds it with it)");
    }
}

/// Where a program is: a path, or a name to be found in PATH.
pub(crate) fn find_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.exists())
}

/// Waits until no other test, of this or another process, holds a program for itself. Held until the file is dropped.
pub(crate) fn alone_with(tool: &str) -> File {
    let program = find_tool(tool).unwrap_or_else(|| panic!("{tool} is not installed"));
    let file = File::open(program).expect("a program that we may read");
    waiting(|| file.lock()).expect("a lock");
    file
}
