//! The limit of open files: a recording keeps each file with probes open, and a descriptor for each link or event.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits that this process began with.
static BEGAN_WITH: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of open files to the hard one. Commands that are run keep the one that this process began with
/// (see `restore`): `select(2)` cannot wait for descriptors beyond 1023.
pub fn raise_open_files() {
    let limit = *BEGAN_WITH.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Not all recordings need it; if one does, opening a file reports the error.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Restores the limits that this process began with, in a child between fork and exec. Calls only setrlimit(2).
pub(crate) fn restore() {
    if let Some(limit) = BEGAN_WITH.get() {
        let _ = setrlimit(Resource::Nofile, *limit);
    }
}
