//! Whose processes and files are limited together.

use std::sync::OnceLock;

use crate::live_thread::owner;

/// Whose process it is, for limits. Any user can have any number of user ids inside of a user namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The user; of processes in another user namespace, its owner.
    pub user: u32,
    /// Inode of the namespace that distinguishes containers; 0 in those of the recorder.
    pub namespace: u64,
}

/// Finds the account of a process, which needs system calls that this crate does without.
static FIND: OnceLock<fn(u32) -> Option<Account>> = OnceLock::new();

/// Has accounts found so from now on.
pub(crate) fn find_by(find: fn(u32) -> Option<Account>) {
    let _ = FIND.set(find);
}

impl Account {
    /// Processes of a user in the recorder's namespaces.
    #[must_use]
    pub const fn of_user(user: u32) -> Self {
        Self { user, namespace: 0 }
    }

    /// The account of a process; `None` if it has ended.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        match FIND.get() {
            Some(find) => find(pid),
            // Without helpers nothing is limited for them.
            None => owner(pid).ok().map(Self::of_user),
        }
    }
}
