//! The perf maps of processes, opened where these see them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, open, openat2};

/// Bytes of a map up to which it is read.
const MOST: u64 = 1 << 30;

/// Opens the perf map of a process: in the root directory of the process, by its number in its own namespace, while it lives; else in that of this program.
/// `None` if there is none, or it is not one that perf would read: a regular file of root, of this user, or of the user of the process.
pub(crate) fn open_map(pid: i32) -> Option<Box<dyn BufRead>> {
    let of_process = own_number(pid).and_then(|own| {
        let root = format!("/proc/{pid}/root");
        let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
        open_in(Path::new(&root), own, Some(owner))
    });
    let file = of_process.or_else(|| open_in(Path::new("/"), pid, None))?;
    Some(Box::new(BufReader::new(file)))
}

/// A process's number in its innermost pid namespace; `None` if it has ended.
fn own_number(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// The map of a process of this number below a root directory.
fn open_in(root: &Path, pid: i32, owner: Option<u32>) -> Option<File> {
    let root = open(
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    // Neither a link nor a pipe in place of the map may lead elsewhere, or block.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let path = format!("tmp/perf-{pid}.map");
    let map = openat2(root.as_fd(), path, flags, Mode::empty(), resolve).ok()?;
    is_trusted(&map, owner).then(|| File::from(map))
}

fn is_trusted(map: &OwnedFd, owner: Option<u32>) -> bool {
    let Ok(found) = rustix::fs::fstat(map) else {
        return false;
    };
    let own = rustix::process::geteuid().as_raw();
    let owners = [Some(0), Some(own), owner];
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && owners.contains(&Some(found.st_uid))
        && u64::try_from(found.st_size).is_ok_and(|size| size <= MOST)
}
