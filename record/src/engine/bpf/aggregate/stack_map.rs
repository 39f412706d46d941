//! The different stacks of hits, in a hash map by a hash of what they are.
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

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use usdtrec_format::perf::put_callchain;

use super::super::program::CHAIN;
use super::super::samples::with_stack::chain;
use super::super::sys::{self, MapKind, MapShape};
use crate::aggregation::CountedStack;
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
const MAX_BYTES: u32 = 20 << 20;
/// What an element takes besides its value, with its share of the buckets, bytes.
const ELEMENT: u32 = 80;

/// The room for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct StackLayout {
    /// Maximum number of frames, with that of the hit.
    frames: u16,
}

impl StackLayout {
    /// That of stacks of a call graph.
    pub(super) const fn new(graph: CallGraph) -> Self {
        Self {
            frames: graph.frames,
        }
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

    const fn shape(self) -> MapShape {
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

/// The map, and the stacks that were read of it.
#[derive(Debug)]
pub(in crate::engine::bpf) struct StackMap {
    descriptor: OwnedFd,
    layout: StackLayout,
    known: Mutex<HashMap<u64, Arc<CountedStack>>>,
}

impl StackMap {
    /// An empty map.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub(super) fn new(layout: StackLayout) -> io::Result<Self> {
        Ok(Self {
            descriptor: sys::create_map(MapKind::Hash, layout.shape())?,
            layout,
            known: Mutex::default(),
        })
    }

    /// The stack with this number; `None` if it cannot be read.
    pub(super) fn get(&self, number: u64) -> Option<Arc<CountedStack>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = known.get(&number) {
            return Some(Arc::clone(stack));
        }
        let mut element = vec![0; self.layout.bytes() as usize];
        sys::read_element(self.descriptor.as_fd(), number, &mut element).ok()?;
        let stack = Arc::new(decode(number, &element)?);
        known.insert(number, Arc::clone(&stack));
        Some(stack)
    }
}

impl AsFd for StackMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The stack of an element.
fn decode(number: u64, element: &[u8]) -> Option<CountedStack> {
    /// The number of words before the addresses.
    const COUNT: usize = 8;
    let word = |at: i16| {
        let bytes = element.get(at.cast_unsigned().into()..)?;
        Some(u64::from_ne_bytes(*bytes.first_chunk()?))
    };
    let (cut, callers) = chain(element.get(END.cast_unsigned().into()..)?)?;
    let (callers, _) = callers.as_chunks::<8>();
    let ip = word(IP)?;
    let callers = callers.iter().map(|word| u64::from_ne_bytes(*word));
    let addresses: Vec<u64> = std::iter::once(ip).chain(callers).collect();
    let mut callchain = Vec::new();
    put_callchain(&addresses, cut, &mut callchain);
    Some(CountedStack {
        number,
        id: word(ID)?,
        pid: word(PID)? as i32,
        time: word(TIME)?,
        ip,
        callchain: callchain.split_off(COUNT),
    })
}

#[cfg(test)]
mod tests {
    use usdtrec_format::perf::{ChainCut, Sample};

    use super::*;

    #[test]
    fn elements_are_stacks() {
        let layout = StackLayout { frames: 3 };
        let cut = ChainCut::NoFrame;
        let words = [77, 9, 1234, 0x1000, cut.marks() as u64, 2, 0x2000, 0x3000, 5];
        let element: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(element.len(), layout.bytes() as usize);
        let stack = decode(42, &element).expect("a stack");
        assert_eq!((stack.number, stack.id, stack.pid), (42, 9, 1234));
        assert_eq!((stack.time, stack.ip), (77, 0x1000));
        let sample = Sample {
            callchain: &stack.callchain,
            ..Sample::default()
        };
        let addresses: Vec<u64> = sample.callers().collect();
        assert_eq!(addresses, [0x1000, 0x2000, 0x3000]);
        assert_eq!(sample.chain_cut(), Some(cut));
        let bad: Vec<u8> = [1, 2, 3, 4, 0, 4, 0, 0, 0_u64]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(decode(1, &bad), None, "more callers than there is room for");
        assert_eq!(decode(1, &element[..40]), None);
    }

    #[test]
    fn the_map_is_bounded() {
        for frames in [1, 127, CallGraph::MAX_FRAMES] {
            let layout = StackLayout { frames };
            assert!(layout.map_bytes() <= MAX_BYTES as usize, "{frames}");
            assert!(layout.shape().entries > 1000, "{frames}");
        }
    }
}
