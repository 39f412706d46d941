//! Directories of `perf record --threads`: `data` is a file with a header, `data.0`, `data.1`, … hold records only
//! (tools/perf/Documentation/perf.data-directory-format.txt).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Most files of a directory: perf makes one a CPU.
const MOST: usize = 65536;

/// The files of a directory, that with the header first; `None` if the path is no directory.
///
/// # Errors
/// A system call's; `InvalidData` for a directory that is none of perf's.
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
    if numbers.len() > MOST {
        let what = format!(
            "a directory with {} files data.N: at most {MOST} are read",
            numbers.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    numbers.sort_unstable();
    let head = path.join("data");
    if !fs::metadata(&head).is_ok_and(|head| head.is_file()) {
        let what = "a directory without the file \"data\": none that perf record --threads made";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    let mut files = vec![open(&head)?];
    for number in numbers {
        files.push(open(&path.join(format!("data.{number}")))?);
    }
    Ok(Some(files))
}

/// The number as perf writes it: `01` and `+1` are other files' names.
fn cpu(written: &str) -> Option<u32> {
    let number: u32 = written.parse().ok()?;
    (number.to_string() == written).then_some(number)
}

/// Opens a file, and nothing that has taken its place: opening a FIFO would wait for ever.
fn open(path: &Path) -> io::Result<File> {
    let named = |error: io::Error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::new(error.kind(), format!("{name}: {error}"))
    };
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(named)?;
    if !file.metadata().map_err(named)?.is_file() {
        let what = io::Error::new(io::ErrorKind::InvalidData, "no regular file");
        return Err(named(what));
    }
    Ok(file)
}
