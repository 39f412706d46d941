//! How long each test took.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The tests that have run, with their durations.
static DURATIONS: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Number of tests that are listed.
const LISTED: usize = 30;

/// A run of fewer tests is not listed.
const MIN_TESTS: usize = 10;

/// Adds a test that has run, with its path.
pub(crate) fn add(path: String, duration: Duration) {
    let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    durations.push((duration, path));
}

/// A table of the longest tests, longest first; empty after a run of few tests. They run beside each other, so the sum is
/// longer than the run.
pub(crate) fn longest() -> String {
    let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if durations.len() < MIN_TESTS {
        return String::new();
    }
    durations.sort_by(|one, other| other.cmp(one));
    let sum: Duration = durations.iter().map(|(duration, _)| *duration).sum();
    let mut text = format!(
        "longest of {} tests, which took {:.1} s in all:\n",
        durations.len(),
        sum.as_secs_f64()
    );
    for (duration, path) in durations.iter().take(LISTED) {
        let _ = writeln!(text, "{:8.2} s  {path}", duration.as_secs_f64());
    }
    text
}

/// Adds all tests that have run to a file: seconds, program and path, with tabs between them.
///
/// # Errors
/// Those of opening the file and of `write(2)`.
pub(crate) fn append(file: &Path) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // Without the hash that cargo adds.
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    for (duration, path) in durations.iter() {
        let _ = writeln!(text, "{:.6}\t{program}\t{path}", duration.as_secs_f64());
    }
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(text.as_bytes())
}
