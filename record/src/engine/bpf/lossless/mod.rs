//! Lossless recording: processes are stopped instead of losing their hits.

pub(super) mod never_stopped;
pub(super) mod pinned_map;
pub(super) mod stopped;
pub(super) mod stopped_map;
