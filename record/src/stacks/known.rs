//! Stacks that were unwound before: most hits of a busy site have the callers of one of the last.

use foldhash::HashMap;
use usdtrec_format::perf::ChainCut;
use usdtrec_unwind::Followed;

use super::maps::MapsVersion;

/// Stacks that are kept; then all are unwound anew.
const MAX_STACKS: usize = 1 << 11;

/// Where a stack may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    /// The sample id.
    pub(super) id: u64,
    pub(super) pid: i32,
    /// The stack pointer.
    pub(super) sp: u64,
    /// Bytes of the copy.
    pub(super) copied: usize,
}

/// A stack that was unwound.
#[derive(Debug)]
pub(super) struct KnownStack {
    pub(super) version: MapsVersion,
    pub(super) followed: Followed,
    pub(super) addresses: Vec<u64>,
    /// Why the callers are cut; `None` if they are not.
    pub(super) cut: Option<ChainCut>,
    /// The stack pointer after the last frame.
    pub(super) outermost: Option<u64>,
}

/// The stacks that were unwound last.
#[derive(Debug, Default)]
pub(super) struct KnownStacks(HashMap<StackKey, KnownStack>);

impl KnownStacks {
    /// The last stack there.
    pub(super) fn get(&self, key: &StackKey) -> Option<&KnownStack> {
        self.0.get(key)
    }

    /// Keeps a stack instead of the one before.
    pub(super) fn put(&mut self, key: StackKey, stack: KnownStack) {
        if self.0.len() >= MAX_STACKS {
            self.0.clear();
        }
        self.0.insert(key, stack);
    }
}
