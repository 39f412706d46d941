//! The trace file that `record` writes: the old one is kept, and only its owner can read the new one.
//!
//! The directory may belong to somebody else, so nothing that stands there is trusted. What is written is a file that we
//! made, or a character device or FIFO that is root's or our own. Links are never written through: as with perf, the link
//! itself is renamed to `PATH.old`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use usdtrec_format::escape::shown;

/// Makes an empty file for a trace, mode 0600. What stands there is kept as `PATH.old`, a link as the link that it is;
/// only a character device or a FIFO is written as it is, also if a link of ours or of root's leads to it.
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

/// Opens what stands at a path, if it is a FIFO: it is written front to back.
///
/// Errors name the path: a FIFO of another user, one that nobody reads.
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

/// A file that did not exist: a link that somebody puts there meanwhile is not followed.
fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Opens what stands at a path for writing, if it is a character device or a FIFO.
///
/// A FIFO of another user would give the trace to that user, and is refused.
fn stream(path: &Path, found: &Metadata) -> io::Result<Option<File>> {
    if found.is_symlink() && !is_trusted(found) {
        return Ok(None);
    }
    // What is looked at is what is then opened, whatever the path leads to by then.
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
        // Without waiting for a reader. As a reader ourselves we would never see that nobody reads it any more.
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

/// Whether root or this user owns it.
fn is_trusted(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

/// Renames what stands at a path, not what it may be a link to.
fn keep_old(path: &Path) -> io::Result<()> {
    let old = with_suffix(path, "old");
    fs::rename(path, &old).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::IsADirectory => ": move that directory away",
            _ => "",
        };
        let what = format!("cannot be kept as {}: {error}{advice}", shown(&old));
        io::Error::new(error.kind(), what)
    })
}

/// Removes a trace; one that is gone already is as good.
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

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", shown(path)))
}
