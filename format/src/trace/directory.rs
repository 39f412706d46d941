//! Directories of `perf record --threads`: the file `data` has the header; `data.0`, `data.1`, … have only records
//! (tools/perf/Documentation/perf.data-directory-format.txt).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::read_error::ReadError;

/// Maximum number of files in a directory. perf creates one per CPU.
const MAX: usize = 65536;

/// Opens the files of a directory, the one with the header first; `None` if the path is not a directory.
///
/// # Errors
/// [`ReadError::Open`]; [`ReadError::Format`] if `perf record --threads` did not create the directory.
pub(crate) fn files(path: &Path) -> Result<Option<Vec<File>>, ReadError> {
    if !fs::metadata(path).map_err(ReadError::open(path))?.is_dir() {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    for entry in fs::read_dir(path).map_err(ReadError::open(path))? {
        let entry = entry.map_err(ReadError::open(path))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("data."));
        let Some(number) = number.and_then(cpu) else {
            continue;
        };
        let kind = entry.file_type().map_err(ReadError::open(&entry.path()))?;
        if kind.is_file() {
            numbers.push(number);
        }
    }
    if numbers.len() > MAX {
        let expected = format!("at most {MAX} files data.N in the directory");
        return Err(ReadError::format(0, expected, numbers.len()));
    }
    // perf reads the files in the order of readdir(3) (perf_data__open_dir), so that events of equal times may be in another order there.
    numbers.sort_unstable();
    let head = path.join("data");
    if !fs::metadata(&head).is_ok_and(|head| head.is_file()) {
        return Err(ReadError::format(
            0,
            "a file, or a directory of perf record --threads",
            "a directory without the file \"data\"",
        ));
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
fn open(path: &Path) -> Result<File, ReadError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(ReadError::open(path))?;
    let metadata = file.metadata().map_err(ReadError::open(path))?;
    if !metadata.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidData, "not a regular file");
        return Err(ReadError::open(path)(error));
    }
    Ok(file)
}
