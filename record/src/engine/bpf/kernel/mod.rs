//! What the running kernel has.

pub(super) mod btf;
pub(super) mod members;
pub(super) mod trials;
pub(super) mod version;
