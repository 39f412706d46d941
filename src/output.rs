//! Output files of `record` and `trace`, of mode 0600. An existing file is renamed to `PATH.old`.
//!
//! Another user may be able to write the directory, so its contents are not trusted. Written are only files created here, character
//! devices, and FIFOs of root or of this user. Symbolic links are not followed: as with perf, the link itself is renamed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use usdtrec_format::escape::shown;

/// Creates an empty output file of mode 0600. An existing file or link is renamed to `PATH.old`. A character device or FIFO is
/// opened instead, also through a link that root or this user owns.
///
/// Errors name the path.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let made = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) => match stream(path, &found)? {
            Some(stream) => Ok(stream),
            None => keep_old(path).and_then(|()| create_new(path)),
        },
        Err(_) => create_new(path),
    };
    made.map_err(|error| named(path, &error))
}

/// Opens a FIFO for writing; `None` if the path is not a FIFO.
///
/// Errors name the path: the FIFO belongs to another user, or has no reader.
pub(crate) fn fifo(path: &Path) -> io::Result<Option<File>> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => {
            let stream = stream(path, &found)?;
            Ok(stream.filter(is_fifo))
        }
        _ => Ok(None),
    }
}

fn is_fifo(file: &File) -> bool {
    let metadata = file.metadata();
    metadata.is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Creates a file with `O_EXCL`, which does not follow a link that another user puts there in the meantime.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Opens a character device or FIFO for writing; `None` for anything else.
///
/// A FIFO of another user is refused, because that user could read the trace.
fn stream(path: &Path, found: &Metadata) -> io::Result<Option<File>> {
    if found.is_symlink() && !is_trusted(found) {
        return Ok(None);
    }
    // The checks and the later open use this handle, as the path could be exchanged in between.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let follow = if found.is_symlink() {
        OFlags::empty()
    } else {
        OFlags::NOFOLLOW
    };
    let Ok(handle) = rustix::fs::open(path, flags | follow, Mode::empty()) else {
        return Ok(None);
    };
    let handle = File::from(handle);
    let metadata = handle.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_char_device() && !kind.is_fifo() {
        return Ok(None);
    }
    if kind.is_fifo() && !is_trusted(&metadata) {
        let owner = metadata.uid();
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{}: is a FIFO of user {owner}, who could read the trace; write to it as that user, or with -o - > FIFO",
                shown(path)
            ),
        ));
    }
    let opened = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let mut options = OpenOptions::new();
    options.write(true);
    if kind.is_fifo() {
        // Do not wait for a reader. Opening for reading, too, would hide that the last reader closed it.
        options.custom_flags(libc::O_NONBLOCK);
    } else {
        options.read(true);
    }
    let stream = options.open(opened).map_err(|error| {
        if error.raw_os_error() == Some(libc::ENXIO) && kind.is_fifo() {
            let what = "is a FIFO that nobody reads: start its reader first";
            return io::Error::new(error.kind(), format!("{}: {what}", shown(path)));
        }
        named(path, &error)
    });
    stream.map(Some)
}

/// Whether root or this user owns the file.
fn is_trusted(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

/// Renames a file, or a link itself, to `PATH.old`.
fn keep_old(path: &Path) -> io::Result<()> {
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

/// Removes a trace. It is no error if the file does not exist.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(named(path, &error)),
        _ => Ok(()),
    }
}

/// The path of a numbered trace.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &number.to_string())
}

/// A path with a point and a suffix at its end.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", shown(path)))
}
