//! The different stacks of hits, in a hash map by a hash of what they are: its elements.
//!
//! | offset in an element | bytes | |
//! |---|---|---|
//! | 0 | 8 | time of the first hit, ns |
//! | 8 | 8 | sample id |
//! | 16 | 8 | process |
//! | 24 | 8 | address of the hit |
//! | 32 | | the chain, as a record of the ring ends with it ([`CHAIN`]): why it is cut, the number of callers, and their addresses |
//!
//! What follows the time, up to the last caller, is the stack: programs hash it, and compare it with that of the element which has the hash. If another
//! one has it, the hit is counted in no group. So the hash is the number of the stack.

use usdtrec_kernel::bpf::sys::MapShape;

use super::super::contract::CHAIN;
use crate::plan::call_graph::CallGraph;

/// Offsets in an element.
pub(super) const TIME: i16 = 0;
pub(super) const ID: i16 = 8;
pub(super) const PID: i16 = 16;
pub(super) const IP: i16 = 24;
pub(super) const END: i16 = 32;
/// Offset of the number of callers.
pub(super) const CALLERS: i16 = END + 8;
/// Number of words of a stack without callers.
pub(super) const FIXED_WORDS: i32 = 5;

/// Maximum number of different stacks, and maximum size of the map, bytes.
const MAX_STACKS: u32 = 16_384;
pub(super) const MAX_BYTES: u32 = 20 << 20;
/// What an element takes besides its value, with its share of the buckets, bytes.
const ELEMENT: u32 = 80;

/// The room for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct StackLayout {
    /// Maximum number of frames, with that of the hit.
    pub(super) frames: u16,
}

impl StackLayout {
    /// The layout of the stacks of a call graph.
    pub(in crate::engine::bpf) const fn new(graph: CallGraph) -> Self {
        Self {
            frames: graph.frames,
        }
    }

    /// Room for so many frames.
    #[cfg(test)]
    pub(super) const fn with(frames: u16) -> Self {
        Self { frames }
    }

    /// Maximum number of callers.
    pub(super) const fn callers(self) -> i32 {
        self.frames as i32
    }

    /// Size of the chain with its room, bytes.
    pub(super) const fn end_bytes(self) -> usize {
        CHAIN + 8 * self.frames as usize
    }

    /// Size of an element, bytes.
    pub(super) const fn bytes(self) -> u32 {
        END as u32 + self.end_bytes() as u32
    }

    pub(super) const fn shape(self) -> MapShape {
        let entries = MAX_BYTES / (self.bytes() + 8 + ELEMENT);
        MapShape {
            key_size: 8,
            value_size: self.bytes(),
            entries: if entries < MAX_STACKS {
                entries
            } else {
                MAX_STACKS
            },
        }
    }

    /// Size of the map, bytes.
    pub(super) const fn map_bytes(self) -> usize {
        let shape = self.shape();
        shape.entries as usize * (shape.key_size + shape.value_size + ELEMENT) as usize
    }
}
