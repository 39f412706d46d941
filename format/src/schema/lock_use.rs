//! Probes at which locks are waited for, acquired and released.

use serde::{Deserialize, Serialize};

/// What a hit of a probe says of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockUse {
    /// What the thread does.
    pub action: LockAction,
    /// The argument that says which lock.
    pub lock: String,
    /// Whether it is acquired together with others that share it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether the argument says a group of locks, of all processes: then it is not known which of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub group: bool,
    /// Of a release: whether the probe fires only while another thread waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contended: bool,
}

/// What a thread does with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockAction {
    /// It begins to wait for the lock, or to acquire it.
    Waits,
    /// It waits no more, and may not have it yet.
    Waited,
    /// It has the lock.
    Acquires,
    /// It has the lock no more, or not for long.
    Releases,
}

impl LockAction {
    /// All of them, with the keys of schema files.
    pub const ALL: [(&str, Self); 4] = [
        ("waits", Self::Waits),
        ("waited", Self::Waited),
        ("acquires", Self::Acquires),
        ("releases", Self::Releases),
    ];

    /// Its key in schema files.
    #[must_use]
    pub fn key(self) -> &'static str {
        let mut all = Self::ALL.iter();
        let known = all.find(|(_, action)| *action == self);
        known.map_or("", |(key, _)| key)
    }
}
