//! Programs and packages of others that tests fetch.
//!
//! They are kept in the folder `$USDTREC_TEST_CACHE`, or `usdtrec-tests` in the user's cache, for all clones. pip and apt check what they download
//! with the checksums of their indexes; that it is still the same is checked once by each test program.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use usdtrec_testing::waiting;

use super::{run, skip};

/// Folders that this process has checked.
static CHECKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A folder with what is fetched: another one for each text `wanted`. `fill` gets it empty; what it cannot fetch skips the test.
#[track_caller]
pub(crate) fn fetched(
    name: &str,
    wanted: &str,
    fill: impl FnOnce(&Path) -> Result<(), String>,
) -> PathBuf {
    let hash = crc32fast::hash(wanted.as_bytes());
    let folder = cache().join(format!("{name}-{hash:08x}"));
    fs::create_dir_all(cache()).expect("a folder");
    // One test of all programs fills it.
    let lock = File::create(cache().join(format!("{name}-{hash:08x}.lock"))).expect("a file");
    waiting(|| lock.lock()).expect("a lock");
    let checked = || CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if checked().contains(&folder) {
        return folder;
    }
    let complete = folder.join("complete");
    let expected = fs::read_to_string(&complete);
    let is_whole =
        expected.is_ok_and(|expected| checksums(&folder).is_ok_and(|now| now == expected));
    if !is_whole {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        if let Err(error) = fill(&folder) {
            let _ = fs::remove_dir_all(&folder);
            skip(&format!("{name} cannot be fetched: {error}"));
        }
        // Last: without it, the folder is filled again.
        let sums = checksums(&folder).expect("files of ours");
        fs::write(complete, sums).expect("a file");
    }
    checked().insert(folder.clone());
    folder
}

/// Runs a command that fetches something; what it says if it fails.
pub(crate) fn fetch(command: Command) -> Result<(), String> {
    let ran = run(command);
    match ran.status.success() {
        true => Ok(()),
        false => Err(format!("{}: {}", ran.status, ran.stderr)),
    }
}

fn cache() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = folder("USDTREC_TEST_CACHE") {
        return cache.into();
    }
    let users = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let users = users.or_else(|| Some(Path::new(&folder("HOME")?).join(".cache")));
    let users = users.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    users.join("usdtrec-tests")
}

/// A line for each file below a folder: checksum, length, path. Not those that Python makes of others.
fn checksums(folder: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    add_checksums(folder, &mut lines)?;
    lines.sort_unstable();
    Ok(lines.concat())
}

fn add_checksums(folder: &Path, lines: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.symlink_metadata()?;
        if kind.is_dir() && !path.ends_with("__pycache__") {
            add_checksums(&path, lines)?;
        } else if kind.is_file() && !path.ends_with("complete") {
            lines.push(format!(
                "{:08x} {} {}\n",
                checksum(&path)?,
                kind.len(),
                path.display()
            ));
        }
    }
    Ok(())
}

fn checksum(path: &Path) -> io::Result<u32> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
