//! What is known of stacks that were unwound before.

use usdtrec_format::perf::ChainCut;

use super::maps::MapsVersion;

/// Where a stack may come again: what its callers depend on besides registers and copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    /// The sample id.
    pub(super) id: u64,
    pub(super) pid: i32,
    pub(super) version: MapsVersion,
}

/// A stack that was unwound.
#[derive(Debug)]
pub(super) struct KnownStack {
    pub(super) addresses: Box<[u64]>,
    /// Why the callers are cut; `None` if they are not.
    pub(super) cut: Option<ChainCut>,
    /// The stack pointer after the last frame.
    pub(super) outermost: Option<u64>,
}

impl KnownStack {
    /// Words in memory.
    pub(super) const fn words(&self) -> usize {
        size_of::<Self>() / size_of::<u64>() + self.addresses.len()
    }
}
