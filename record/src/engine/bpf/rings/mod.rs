//! The rings that programs write to.

pub(super) mod cpu_rings;
pub(super) mod ring_size;
pub(super) mod ringbuf;
