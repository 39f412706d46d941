//! Which open files are known to be of local file systems, without a question to a file system.
//!
//! `/proc/self/fdinfo` has the number of the mount of an open handle. It is looked up among the mounts that this process sees, whose list is read anew when
//! it has changed (poll(2)). A mount of another namespace, one that was unmounted lazily and an overlay are not known.
//! An overlay never is, whatever is below it: also of a file whose content is on a local disk, it asks the lower file system for
//! attributes (fs/overlayfs/inode.c, `ovl_getattr`).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, fstat, major, memfd_create, minor};

use crate::file_mapping::DeviceNumber;

/// Types of file systems that read from a disk or from memory, as mountinfo has them (proc_pid_mountinfo(5)).
const TYPES: &str = "\
    bcachefs btrfs devtmpfs exfat ext2 ext3 ext4 f2fs hugetlbfs iso9660 jfs nilfs2 ramfs rootfs \
    squashfs tmpfs udf vfat xfs";
/// Major numbers of block devices that a file or another host may be below: loop and nbd (Documentation/admin-guide/devices.txt).
const NOT_LOCAL_DISKS: [u32; 2] = [7, 43];
/// Maximum number of bytes of mounts that are read.
const MAX_MOUNTS_BYTES: u64 = 8 << 20;

static MOUNTS: Mutex<Option<LocalMounts>> = Mutex::new(None);

/// The local mounts that this process sees.
#[derive(Debug)]
struct LocalMounts {
    list: File,
    ids: HashSet<u64>,
    devices: HashSet<DeviceNumber>,
}

impl LocalMounts {
    fn read() -> io::Result<Self> {
        let list = File::open("/proc/self/mountinfo")?;
        let (mut ids, mut devices) = (HashSet::new(), HashSet::new());
        for line in BufReader::new((&list).take(MAX_MOUNTS_BYTES)).split(b'\n') {
            if let Some((id, device)) = local_mount(&String::from_utf8_lossy(&line?)) {
                ids.insert(id);
                devices.insert(device);
            }
        }
        // The mount of files in memory (memfd_create(2), System V shared memory) is in no list.
        let memory = memfd_create(c"local", MemfdFlags::CLOEXEC)?;
        ids.extend(mount_id(memory.as_fd()));
        let device = fstat(&memory)?.st_dev;
        devices.insert(DeviceNumber {
            major: major(device),
            minor: minor(device),
        });
        Ok(Self { list, ids, devices })
    }

    /// Whether the list may be another one now.
    fn has_changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.list, PollFlags::PRI)];
        let found = poll(&mut polled, Some(&Timespec::default()));
        found.is_err()
            || polled[0]
                .revents()
                .intersects(PollFlags::PRI | PollFlags::ERR)
    }
}

/// Number and device of a mount, if its file system is local.
fn local_mount(line: &str) -> Option<(u64, DeviceNumber)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ');
    let id = fields.next()?.parse().ok()?;
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    let device = DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    };
    let kind = file_system.split(' ').next()?;
    let is_local = TYPES.split(' ').any(|known| known == kind);
    (is_local && !NOT_LOCAL_DISKS.contains(&device.major)).then_some((id, device))
}

/// Asks the list as it is now; `false` if it cannot be read.
fn ask(question: impl FnOnce(&LocalMounts) -> bool) -> bool {
    let mut known = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if known.as_ref().is_none_or(LocalMounts::has_changed) {
        *known = LocalMounts::read().ok();
    }
    known.as_ref().is_some_and(question)
}

/// Whether the file of a handle is of a local file system. The handle keeps its mount, so that its number cannot be that of another one meanwhile.
pub(super) fn has(handle: BorrowedFd<'_>) -> bool {
    mount_id(handle).is_some_and(|id| ask(|mounts| mounts.ids.contains(&id)))
}

/// Whether a local file system has a device.
pub(super) fn has_device(device: DeviceNumber) -> bool {
    ask(|mounts| mounts.devices.contains(&device))
}

/// The number of the mount of a handle.
fn mount_id(handle: BorrowedFd<'_>) -> Option<u64> {
    let path = format!("/proc/self/fdinfo/{}", handle.as_fd().as_raw_fd());
    let mut text = String::with_capacity(256);
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_are_known_by_their_types() {
        let found = [
            "21 28 0:20 / /proc rw,relatime shared:12 - proc proc rw",
            "30 28 0:41 / /a\\040b rw master:1 - fuse.sshfs host:/ rw,user_id=0",
            "31 28 0:42 /x /nfs rw - nfs4 host:/x rw",
            "32 28 0:43 / /tmp rw - tmpfs tmpfs rw",
            "33 28 0:44 / /merged rw - overlay overlay rw,lowerdir=/a:/b",
            "34 28 8:1 / / rw shared:1 - ext4 /dev/sda1 rw",
            "35 28 8:2 / /ntfs rw shared:1 - fuseblk /dev/sda2 rw",
            "36 28 7:2 / /snap/x ro shared:1 - squashfs /dev/loop2 ro",
            "damaged",
        ]
        .map(|line| local_mount(line).map(|(id, _)| id));
        let expected = [None, None, None, Some(32), None, Some(34), None, None, None];
        assert_eq!(found, expected);
    }

    /// A file of procfs is not known, and one without a mount is.
    #[test]
    fn files_in_memory_are_local() {
        let proc = File::open("/proc/self/maps").unwrap();
        assert!(!has(proc.as_fd()));
        let memory = memfd_create(c"x", MemfdFlags::CLOEXEC).unwrap();
        assert!(has(memory.as_fd()));
        assert!(!has_device(DeviceNumber { major: 0, minor: 0 }));
    }
}
