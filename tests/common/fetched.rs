//! Programs of others that tests fetch.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A folder with what is fetched, which is filled once for all tests: again if `wanted` is another text, or in another place, since programs have paths in
/// them. `fill` gets the folder.
#[track_caller]
pub(crate) fn fetched(name: &str, wanted: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let lock = File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let complete = folder.join("complete");
    let wanted = format!("{}\n{wanted}", folder.display());
    if !fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
        fill(&folder);
        fs::write(complete, wanted).expect("a file");
    }
    folder
}
