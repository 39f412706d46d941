//! The recorded processes: following them, and holding those that they start until the probes are attached to them.

pub(super) mod children;
pub(super) mod executables;
pub(super) mod follow;
pub(super) mod groups;
pub(super) mod hold;
pub(super) mod mapping_hold;
