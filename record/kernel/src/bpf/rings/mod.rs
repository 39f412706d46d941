//! The rings that programs write to.

pub mod cpu_rings;
pub mod ring_size;
pub mod ringbuf;
