//! Spans of well-known programs that cannot be found by the words of their probes' names, or would be found wrongly.

/// A span of one of these programs.
#[derive(Debug)]
pub(super) struct KnownSpan {
    pub(super) provider: &'static str,
    /// Without the provider.
    pub(super) name: &'static str,
    pub(super) starts: &'static [&'static str],
    pub(super) dones: &'static [&'static str],
    /// The argument, of the same process, that begin and end have in common; `None` for the thread.
    pub(super) key: Option<&'static str>,
}

impl KnownSpan {
    const fn new(
        provider: &'static str,
        name: &'static str,
        starts: &'static [&'static str],
        dones: &'static [&'static str],
        key: Option<&'static str>,
    ) -> Self {
        Self {
            provider,
            name,
            starts,
            dones,
            key,
        }
    }
}

pub(super) const KNOWN: [KnownSpan; 20] = [
    // Every way to get a lightweight lock ends with the same release.
    KnownSpan::new(
        "postgresql",
        "lwlock",
        &[
            "lwlock__acquire",
            "lwlock__condacquire",
            "lwlock__acquire__or__wait",
        ],
        &["lwlock__release"],
        None,
    ),
    KnownSpan::new(
        "postgresql",
        "buffer__checkpoint__sync",
        &["buffer__checkpoint__sync__start"],
        &["buffer__checkpoint__done"],
        None,
    ),
    KnownSpan::new(
        "hotspot",
        "class__initialization",
        &["class__initialization__required"],
        &[
            "class__initialization__end",
            "class__initialization__recursive",
            "class__initialization__concurrent",
            "class__initialization__erroneous",
            "class__initialization__super__failed",
            "class__initialization__error",
        ],
        None,
    ),
    // All pools begin before the first ends.
    KnownSpan::new(
        "hotspot",
        "mem__pool__gc",
        &["mem__pool__gc__begin"],
        &["mem__pool__gc__end"],
        Some("pool"),
    ),
    // One thread has many requests in hand.
    KnownSpan::new(
        "node",
        "http__server__request",
        &["http__server__request"],
        &["http__server__response"],
        Some("connection"),
    ),
    KnownSpan::new(
        "node",
        "http__client__request",
        &["http__client__request"],
        &["http__client__response"],
        Some("connection"),
    ),
    KnownSpan::new(
        "node",
        "net__server__connection",
        &["net__server__connection"],
        &["net__stream__end"],
        Some("connection"),
    ),
    KnownSpan::new(
        "php",
        "exception",
        &["exception__thrown"],
        &["exception__caught"],
        None,
    ),
    KnownSpan::new(
        "libstdcxx",
        "throw",
        &["throw", "rethrow"],
        &["catch"],
        None,
    ),
    KnownSpan::new(
        "sssd",
        "sysdb_transaction",
        &["sysdb_transaction_start"],
        &["sysdb_transaction_commit_after", "sysdb_transaction_cancel"],
        None,
    ),
    KnownSpan::new("libc", "mutex_lock", MUTEX_LOCK, MUTEX_LOCKED, None),
    KnownSpan::new("libc", "mutex", MUTEX_LOCKED, &["mutex_release"], MUTEX),
    KnownSpan::new("libc", "rdlock", &["rdlock_entry"], RDLOCKED, None),
    KnownSpan::new("libc", "wrlock", &["wrlock_entry"], WRLOCKED, None),
    KnownSpan::new("libc", "pthread_join", JOIN, JOINED, None),
    KnownSpan::new("libpthread", "mutex_lock", MUTEX_LOCK, MUTEX_LOCKED, None),
    KnownSpan::new(
        "libpthread",
        "mutex",
        MUTEX_LOCKED,
        &["mutex_release"],
        MUTEX,
    ),
    KnownSpan::new("libpthread", "rdlock", &["rdlock_entry"], RDLOCKED, None),
    KnownSpan::new("libpthread", "wrlock", &["wrlock_entry"], WRLOCKED, None),
    KnownSpan::new("libpthread", "pthread_join", JOIN, JOINED, None),
];

const MUTEX_LOCK: &[&str] = &[
    "mutex_entry",
    "mutex_timedlock_entry",
    "mutex_clocklock_entry",
];
const MUTEX_LOCKED: &[&str] = &["mutex_acquired", "mutex_timedlock_acquired"];
const MUTEX: Option<&str> = Some("mutex");
const RDLOCKED: &[&str] = &["rdlock_acquire_read"];
const WRLOCKED: &[&str] = &["wrlock_acquire_write"];
const JOIN: &[&str] = &["pthread_join"];
const JOINED: &[&str] = &["pthread_join_ret"];

#[cfg(feature = "schemas")]
#[cfg(test)]
mod tests {
    use crate::schema::bundled;

    use super::*;

    /// An argument that is said to be the key is one of all its probes.
    #[test]
    fn keys_are_arguments() {
        for known in &KNOWN {
            for name in known.starts.iter().chain(known.dones) {
                let probes = bundled::of_provider(known.provider).iter();
                if known.key.is_none() && probes.len() == 0 {
                    continue;
                }
                let mut probes = probes.filter(|probe| probe.name == *name).peekable();
                assert!(probes.peek().is_some(), "{name}");
                let key = known.key;
                let has =
                    probes.all(|probe| key.is_none_or(|key| probe.argument_index(key).is_some()));
                assert!(has, "{name} has no {key:?}");
            }
        }
    }
}
