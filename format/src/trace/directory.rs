//! Directories of `perf record --threads`: the file `data` has the header; `data.0`, `data.1`, … have only records
//! (tools/perf/Documentation/perf.data-directory-format.txt).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Maximum number of files in a directory. perf creates one per CPU.
const MAX: usize = 65536;

/// Opens the files of a directory, the one with the header first; `None` if the path is not a directory.
///
/// # Errors
/// Errors of system calls; `InvalidData` if `perf record --threads` did not create the directory.
pub(crate) fn files(path: &Path) -> io::Result<Option<Vec<File>>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data."));
        let Some(number) = number.and_then(cpu) else {
            continue;
        };
        if entry.file_type()?.is_file() {
            numbers.push(number);
        }
    }
    if numbers.len() > MAX {
        let what = format!(
            "expected at most {MAX} files data.N in the directory, found {}",
            numbers.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    numbers.sort_unstable();
    let head = path.join("data");
    if !fs::metadata(&head).is_ok_and(|head| head.is_file()) {
        let what = "a directory without the file \"data\", which perf record --threads creates";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut files = vec![open(&head)?];
    for number in numbers {
        files.push(open(&path.join(format!("data.{number}")))?);
    }
    Ok(Some(files))
}

/// Parses a CPU number as perf writes it, without leading zeros or signs.
fn cpu(written: &str) -> Option<u32> {
    let number: u32 = written.parse().ok()?;
    (number.to_string() == written).then_some(number)
}

/// Opens a regular file. Other files are refused, and a FIFO does not block.
fn open(path: &Path) -> io::Result<File> {
    let named = |error: io::Error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::new(error.kind(), format!("{name}: {error}"))
    };
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(named)?;
    if !file.metadata().map_err(named)?.is_file() {
        let what = io::Error::new(io::ErrorKind::InvalidData, "not a regular file");
        return Err(named(what));
    }
    Ok(file)
}
