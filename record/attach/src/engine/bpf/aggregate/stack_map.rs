//! The map of the different stacks of hits, as the recorder reads it.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use usdtrec_format::perf::put_callchain;
use usdtrec_kernel::bpf::sys::{self, MapKind};

use super::super::samples::with_stack::chain;
use super::stack_layout::{END, ID, IP, PID, StackLayout, TIME};
use crate::aggregation::CountedStack;

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
        let layout = StackLayout::with(3);
        let cut = ChainCut::NoFrame;
        let words = [
            77,
            9,
            1234,
            0x1000,
            cut.marks() as u64,
            2,
            0x2000,
            0x3000,
            5,
        ];
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
}
