//! Resource limits of this process: open files, as a recording keeps each file with probes open and a descriptor for each link or event;
//! and locked memory, to which the kernel charges maps before Linux 5.11.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits that this process began with.
static BEGAN_WITH: OnceLock<Limits> = OnceLock::new();

struct Limits {
    open_files: Rlimit,
    locked_memory: Rlimit,
}

impl Limits {
    fn get() -> Self {
        Self {
            open_files: getrlimit(Resource::Nofile),
            locked_memory: getrlimit(Resource::Memlock),
        }
    }
}

/// Raises the soft limit of open files to the hard one. Commands that are run keep the one that this process began with
/// (see `restore`): `select(2)` cannot wait for descriptors beyond 1023.
pub fn raise_open_files() {
    let limit = BEGAN_WITH.get_or_init(Limits::get).open_files;
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Not all recordings need it; if one does, opening a file reports the error.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Removes the limit of locked memory (`RLIMIT_MEMLOCK`), which takes `CAP_SYS_RESOURCE`. Commands that are run keep the one that this process
/// began with. Returns whether it was removed.
pub fn remove_locked_memory() -> bool {
    BEGAN_WITH.get_or_init(Limits::get);
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    setrlimit(Resource::Memlock, unlimited).is_ok()
}

/// Restores the limits that this process began with, in a child between fork and exec. Calls only setrlimit(2).
pub fn restore() {
    if let Some(limits) = BEGAN_WITH.get() {
        let _ = setrlimit(Resource::Nofile, limits.open_files);
        let _ = setrlimit(Resource::Memlock, limits.locked_memory);
    }
}
