//! Stopping processes: instead of losing their hits (lossless recording), and, where threads cannot be held in the kernel, at mappings of files
//! that are not known ([`mapping_hold`](super::processes::mapping_hold)).

pub(super) mod exempt_processes;
pub(super) mod pinned_map;
pub(super) mod stopped;
pub(super) mod stopped_map;
