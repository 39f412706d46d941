//! The size of the rings of programs.

/// Default size of each ring, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const DEFAULT_RING: usize = 8 << 20;
const MIN_DEFAULT_RING: usize = 1 << 20;
const DEFAULT_RINGS: usize = 64 << 20;
/// The same with copies of stacks, as far as memory allows: the first copies of a site are large, and a burst of hits is to fit.
const STACK_RING: usize = 64 << 20;
const STACK_RINGS: usize = 256 << 20;
/// The part of the host's memory that all such rings take at most.
const MEMORY_PART: u64 = 32;
/// Maximum size of all rings, bytes.
const MAX_RINGS: usize = 1 << 30;

/// Size of each ring, bytes, a power of two. `has_copies`: whether stacks are copied.
pub fn ring_bytes(asked: Option<usize>, cpus: usize, has_copies: bool) -> usize {
    let cpus = cpus.max(1);
    let bytes = asked.unwrap_or_else(|| {
        let usual = (DEFAULT_RINGS / cpus).clamp(MIN_DEFAULT_RING, DEFAULT_RING);
        match has_copies {
            true => (rings_of_stacks() / cpus).clamp(usual, STACK_RING),
            false => usual,
        }
    });
    let bytes = bytes.min(MAX_RINGS / cpus).max(rustix::param::page_size());
    1 << bytes.ilog2()
}

/// Size of all rings with copies of stacks, bytes.
fn rings_of_stacks() -> usize {
    let host = rustix::system::sysinfo();
    let memory = u64::from(host.mem_unit) * host.totalram;
    usize::try_from(memory / MEMORY_PART).map_or(STACK_RINGS, |part| part.min(STACK_RINGS))
}
