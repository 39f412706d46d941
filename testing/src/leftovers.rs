//! What a test run leaves if it is killed.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Notes a temporary directory of a test in the file `USDTREC_TEST_DIRECTORIES`, if there is such a variable: `.ci/clear-up` removes it if the run is killed.
pub fn note_directory(directory: &Path) {
    if let Some(file) = std::env::var_os("USDTREC_TEST_DIRECTORIES")
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file)
    {
        // Without it, a directory may stay after a kill.
        let _ = file.write_all(format!("{}\n", directory.display()).as_bytes());
    }
}
