//! The size of the rings of programs.

/// Default size of each ring, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const DEFAULT_RING: usize = 8 << 20;
const MIN_DEFAULT_RING: usize = 1 << 20;
const DEFAULT_RINGS: usize = 64 << 20;
/// Maximum size of all rings, bytes.
const MAX_RINGS: usize = 1 << 30;

/// Size of each ring, bytes, a power of two.
pub(in crate::engine::bpf) fn ring_bytes(asked: Option<usize>, cpus: usize) -> usize {
    let cpus = cpus.max(1);
    let bytes = asked.unwrap_or((DEFAULT_RINGS / cpus).clamp(MIN_DEFAULT_RING, DEFAULT_RING));
    let bytes = bytes.min(MAX_RINGS / cpus).max(rustix::param::page_size());
    1 << bytes.ilog2()
}
