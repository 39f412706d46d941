//! How large the stacks of a site are: which of several sizes its programs should have room for.
//!
//! A site begins with the largest size, so that its first stacks are whole. When some of them are known, it gets the smallest size in which all
//! would have fitted twice; when more are known, the smallest in which they would have fitted. A stack that was cut for lack of room raises the size again.
//!
//! A copy has 512 bytes to 16 KiB, in which the first stack of a site is whole; a chain by frame pointers begins with
//! room for all frames. The size of a reservation must be a constant, so the program has a reservation for each size,
//! and a word of the site chooses one (`program/stack.rs`). Sizes are chosen after each 256 kB of records, and after
//! each pass.
//!
//! A hit whose stack takes 16 KiB costs about five times what one with 2 KiB does, so a size that is larger than was
//! needed costs hits if they come fast. Therefore the word has a second, smaller size for a crowded ring, which is at
//! most 2 KiB once hits were lost. A ring is crowded from half of its size on; from an eighth on for a site that lost
//! hits, and for one that has the largest size because none was chosen yet: a burst of its first hits would fill the ring.
//!
//! A copy that would end beyond the memory of the stack has the smallest size that holds the rest. `dwarf,SIZE` is
//! exact. So are perf events, whose size is fixed when they are opened.
//!
//! How many stacks were taken at each site by each thread: the map that programs limit their rate with.
//!
//! A program reserves a record without a stack when a thread had enough of them in a second. So hits are complete, and
//! only stacks are thinned out; the chain of such an event has the address of the hit and a reason of its own.

use std::io;
use std::os::fd::OwnedFd;

use usdtrec_kernel::bpf::sys;

use crate::plan::call_graph::StackSizes;

/// Number of whole stacks before a smaller size is chosen.
const WINDOW: u64 = 256;
/// The same for the first time, in which a hit costs several times what it does with the size that the site needs.
const FIRST_WINDOW: u64 = 64;
/// The same for the first time, if the rings are crowded.
const CROWDED_WINDOW: u64 = 8;
/// The largest number of times that a window is doubled: each time that a smaller size turned out to be too small.
const MAX_DOUBLINGS: u32 = 10;

/// Fill level, in 256ths, from which on a ring is crowded for a site that lost no hit.
const HALF: u64 = 128;
/// The same for a site that lost hits, or begins.
const EIGHTH: u64 = 32;

/// What the stacks of a sample id have needed since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackUse {
    /// Number of stacks that were not cut for lack of room.
    pub whole: u64,
    /// The most that one of them needed, in the unit of the sizes.
    pub most: u32,
    /// Number of those that were cut for lack of room, and the most room that they had.
    pub cut: u64,
    cut_room: u32,
}

impl StackUse {
    /// Counts a stack that needed so much.
    pub fn count(&mut self, needed: u32) {
        self.whole += 1;
        self.most = self.most.max(needed);
    }

    /// Counts a stack that was cut for lack of room, of which it had so much.
    pub fn count_cut(&mut self, room: u32) {
        self.cut += 1;
        self.cut_room = self.cut_room.max(room);
    }

    /// Whether no stack was counted.
    pub const fn is_empty(&self) -> bool {
        self.whole + self.cut == 0
    }

    /// Whether this much room was too little for a stack.
    const fn needs_more_than(&self, room: u32) -> bool {
        self.cut > 0 && self.cut_room >= room
    }
}

/// The size of the stacks of a sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackSize {
    /// Index of the size.
    index: usize,
    /// Index of the size while the ring of the CPU is crowded.
    crowded: usize,
    /// The most that a stack needed in this window, and the number of whole stacks in it.
    most: u32,
    seen: u64,
    /// How often the window is doubled; `None` before a smaller size was chosen.
    doublings: Option<u32>,
    /// Number of lost hits so far.
    lost: u64,
}

impl StackSize {
    /// The size to begin with.
    pub(super) fn new(sizes: Option<&StackSizes>) -> Self {
        Self {
            index: sizes.map_or(0, |sizes| sizes.all.len() - 1),
            crowded: sizes.map_or(0, |sizes| sizes.usual),
            most: 0,
            seen: 0,
            doublings: None,
            lost: 0,
        }
    }

    /// The sizes as programs read them: the index in the lowest 8 bits, above them that of a crowded ring, above them the fill level of such a
    /// ring.
    pub(super) const fn word(self) -> u64 {
        let begins = self.doublings.is_none();
        let crowded_from = if self.lost > 0 || begins {
            EIGHTH
        } else {
            HALF
        };
        self.index as u64 | (self.crowded as u64) << 8 | crowded_from << 16
    }

    /// Takes what stacks have needed, the number of hits that were lost so far, and whether the rings are crowded. A site that lost hits has
    /// no more than the usual size in a crowded ring: a cut stack is better than none.
    pub(super) fn learn(
        &mut self,
        used: StackUse,
        lost: u64,
        is_crowded: bool,
        sizes: &StackSizes,
    ) {
        self.choose(used, lost, is_crowded, sizes);
        if lost > 0 {
            self.crowded = self.crowded.min(sizes.usual);
        }
    }

    fn choose(&mut self, used: StackUse, lost: u64, is_crowded: bool, sizes: &StackSizes) {
        let is_crowded = is_crowded || lost > self.lost;
        self.lost = lost;
        let room = |index: usize| sizes.all.get(index).copied().unwrap_or(u32::MAX);
        let last = sizes.all.len() - 1;
        if self.index < last && used.needs_more_than(room(self.index)) {
            *self = Self {
                index: last,
                crowded: self.index + 1,
                most: 0,
                seen: 0,
                doublings: self.doublings.map(|most| MAX_DOUBLINGS.min(most + 1)),
                lost,
            };
            return;
        }
        if self.crowded < self.index && used.needs_more_than(room(self.crowded)) {
            self.crowded += 1;
        }
        self.most = self.most.max(used.most);
        self.seen += used.whole;
        let (window, spare) = match self.doublings {
            None if is_crowded => (CROWDED_WINDOW, self.most / 8),
            None if self.seen < WINDOW => (FIRST_WINDOW, self.most),
            // Others may need a little more.
            doublings => (WINDOW << doublings.unwrap_or(0), self.most / 8),
        };
        if self.seen >= window {
            let enough = self.most.saturating_add(spare);
            let smallest = sizes.all.iter().position(|room| *room >= enough);
            self.index = smallest.unwrap_or(last).min(self.index);
            self.crowded = self.index;
            (self.most, self.seen) = (0, 0);
            self.doublings.get_or_insert(0);
        }
    }
}

/// Maximum number of pairs of site and thread. The one that was not used for the longest time makes room for another, and begins anew
/// when it is hit again.
const MAX_PAIRS: u32 = 16 << 10;
/// Bytes of a key: the cookie of the site, and the thread.
const KEY: u32 = 16;
/// Bytes of a value: when its second began, ns of `CLOCK_MONOTONIC`, and the number of stacks since.
const VALUE: u32 = 16;

/// Creates the map.
pub(in crate::engine::bpf) fn create_rates() -> io::Result<OwnedFd> {
    let shape = sys::MapShape {
        key_size: KEY,
        value_size: VALUE,
        entries: MAX_PAIRS,
    };
    sys::create_map(sys::MapKind::LruHash, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> StackSizes {
        StackSizes {
            all: vec![512, 1024, 2048, 4096],
            usual: 2,
        }
    }

    fn used(hits: u64, needed: u32) -> StackUse {
        let mut used = StackUse::default();
        (0..hits).for_each(|_| used.count(needed));
        used
    }

    fn cut(hits: u64, room: u32) -> StackUse {
        let mut used = StackUse::default();
        (0..hits).for_each(|_| used.count_cut(room));
        used
    }

    #[test]
    fn a_site_begins_with_the_largest_size_and_gets_what_its_stacks_need() {
        let mut size = StackSize::new(Some(&sizes()));
        let mut learn = |used: StackUse| {
            size.learn(used, 0, false, &sizes());
            (size.index, size.crowded)
        };
        assert_eq!(learn(used(63, 900)), (3, 2));
        assert_eq!(
            learn(used(1, 100)),
            (2, 2),
            "64 stacks, with room for twice 900 bytes"
        );
        assert_eq!(learn(used(255, 900)), (2, 2));
        assert_eq!(
            learn(used(1, 100)),
            (1, 1),
            "256 stacks of at most 900 bytes"
        );
        // What was in the ring before the change is no evidence about the present size.
        assert_eq!(learn(cut(1, 512)), (1, 1));
        assert_eq!(learn(cut(1, 1024)), (3, 2), "each cut raises the size");
        // The smaller size was too small: the next window is longer.
        assert_eq!(learn(used(256, 100)), (3, 2));
        assert_eq!(learn(used(256, 100)), (0, 0));
        assert_eq!(learn(used(2048, 100)), (0, 0));
        assert_eq!(learn(cut(1, 512)), (3, 1));
        assert_eq!(learn(cut(1, 1024)), (3, 2), "in a crowded ring");
        assert_eq!(learn(cut(1, 4096)), (3, 3), "the largest");
    }

    #[test]
    fn a_crowded_ring_makes_the_first_window_short() {
        for (lost, is_crowded) in [(1, false), (0, true)] {
            let mut size = StackSize::new(Some(&sizes()));
            let mut learn = |used: StackUse| {
                size.learn(used, lost, is_crowded, &sizes());
                size.index
            };
            assert_eq!(learn(cut(1000, 2048)), 3, "nobody knows what these need");
            assert_eq!(learn(used(8, 1900)), 3, "with room for a little more");
        }
        let mut size = StackSize::new(Some(&sizes()));
        size.learn(used(256, 3000), 1, false, &sizes());
        assert_eq!((size.index, size.crowded), (3, 2), "losses are worse");
        size.learn(cut(1, 2048), 1, false, &sizes());
        assert_eq!((size.index, size.crowded), (3, 2));
        let mut size = StackSize::new(Some(&sizes()));
        size.learn(used(8, 1000), 1, false, &sizes());
        assert_eq!(size.index, 2);
        size.learn(used(8, 100), 2, false, &sizes());
        assert_eq!(size.index, 2, "later windows are whole");
    }

    /// A busy site fills a ring with the largest copies before the recorder runs.
    #[test]
    fn a_ring_is_crowded_sooner_after_losses() {
        let crowded_from = |size: StackSize| size.word() >> 16;
        let mut size = StackSize::new(Some(&sizes()));
        assert_eq!(crowded_from(size), EIGHTH, "before the first choice");
        size.learn(used(64, 1000), 0, false, &sizes());
        assert_eq!(crowded_from(size), HALF);
        size.learn(cut(1, 2048), 0, false, &sizes());
        assert_eq!((size.index, crowded_from(size)), (3, HALF));
        size.learn(used(1, 1000), 1, false, &sizes());
        assert_eq!(crowded_from(size), EIGHTH);
    }
}
