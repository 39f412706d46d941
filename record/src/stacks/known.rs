//! Stacks that were unwound before: most hits of a busy site have the callers of one of the last.

use std::collections::HashMap;

use usdtrec_unwind::Followed;

use super::maps::MapsVersion;

/// Stacks that are kept; then all are unwound anew.
const MAX_STACKS: usize = 1 << 10;

/// Where a stack may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackKey {
    /// The sample id.
    pub(super) id: u64,
    pub(super) pid: i32,
    /// The stack pointer.
    pub(super) sp: u64,
}

/// A stack that was unwound to its outermost frame.
#[derive(Debug)]
pub(super) struct KnownStack {
    pub(super) version: MapsVersion,
    pub(super) followed: Followed,
    pub(super) addresses: Vec<u64>,
    /// The stack pointer after the outermost frame.
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
