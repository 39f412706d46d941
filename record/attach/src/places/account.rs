//! Whose process it is, for the limits of what is planted for it.
//!
//! Any user can have any number of user ids and pid namespaces inside of a user namespace, but cannot choose who owns that. So processes in another
//! user namespace than the recorder's are one account by the owner of the outermost one; if that is root, as for containers with a user namespace, by
//! the namespace. Containers without one are all of the host's users: they are told apart by their pid namespaces, which only root can make.

use std::fs::{File, metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// `NS_GET_PARENT` and `NS_GET_OWNER_UID` (include/uapi/linux/nsfs.h).
const GET_PARENT: libc::c_ulong = 0xb702;
const GET_OWNER: libc::c_ulong = 0xb704;
/// Maximum number of user namespaces within each other (kernel/user_namespace.c, `create_user_ns`).
const MAX_LEVELS: usize = 33;

/// Whose process it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The user; of processes in another user namespace, its owner.
    pub user: u32,
    /// Inode of the namespace that tells containers apart; 0 in those of the recorder.
    pub namespace: u64,
}

impl Account {
    /// Processes of a user in the recorder's namespaces.
    pub const fn of_user(user: u32) -> Self {
        Self { user, namespace: 0 }
    }

    /// That of a process; `None` if it has ended.
    pub fn of_process(pid: u32) -> Option<Self> {
        let user = metadata(format!("/proc/{pid}")).ok()?.uid();
        let here = |kind: &str| Some(metadata(format!("/proc/self/ns/{kind}")).ok()?.ino());
        let its = |kind: &str| Some(metadata(format!("/proc/{pid}/ns/{kind}")).ok()?.ino());
        if its("user") != here("user") {
            let outer = outermost(pid);
            return Some(outer.unwrap_or_else(|_| Self::of_user(user)));
        }
        let inside = its("pid").filter(|inside| Some(*inside) != here("pid"));
        Some(Self {
            user,
            namespace: inside.unwrap_or(0),
        })
    }
}

/// The account of processes below the outermost user namespace that a process is in, inside of the recorder's.
fn outermost(pid: u32) -> io::Result<Account> {
    let own = File::open("/proc/self/ns/user")?.metadata()?.ino();
    let mut space = File::open(format!("/proc/{pid}/ns/user"))?;
    for _ in 0..MAX_LEVELS {
        match parent(&space) {
            Ok(parent) if parent.metadata()?.ino() != own => space = parent,
            // Those around the recorder's are not shown.
            Ok(_) | Err(_) => break,
        }
    }
    let user = owner(&space)?;
    let namespace = match user {
        0 => space.metadata()?.ino(),
        _ => 0,
    };
    Ok(Account { user, namespace })
}

fn parent(space: &File) -> io::Result<File> {
    // SAFETY: the ioctl takes no argument.
    let parent = unsafe { libc::ioctl(space.as_raw_fd(), GET_PARENT) };
    if parent < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the ioctl has returned a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(parent) }.into())
}

fn owner(space: &File) -> io::Result<u32> {
    let mut user: libc::uid_t = 0;
    // SAFETY: the ioctl writes one `uid_t` to `user`.
    let outcome = unsafe { libc::ioctl(space.as_raw_fd(), GET_OWNER, &raw mut user) };
    match outcome {
        0.. => Ok(user),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_of_its_user() {
        let user = rustix::process::geteuid().as_raw();
        let own = Account::of_process(std::process::id());
        assert_eq!(own, Some(Account::of_user(user)));
        assert_eq!(Account::of_process(u32::MAX), None);
    }
}
