//! How large the stacks of a site are: which of several sizes its programs should have room for.

use crate::plan::call_graph::StackSizes;

/// Number of hits that need less than half before a smaller size is chosen.
const WINDOW: u64 = 256;
/// The largest number of times that a window is doubled: each time that a smaller size turned out to be too small.
const MOST_DOUBLINGS: u32 = 10;
/// If one in so many hits since the last change was cut for lack of room, a larger size is chosen.
const CUT: u64 = 256;
/// Number of hits after a loss in which no larger size is chosen.
const AFTER_LOSS: u64 = 4096;

/// What the stacks of a sample id have needed since the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackUse {
    /// Number of stacks.
    pub(crate) hits: u64,
    /// The most that a stack needed, in the unit of the sizes.
    pub(crate) most: u32,
    /// Number of those that were cut for lack of room, and the room that they had: those with the most.
    cut: u64,
    cut_room: u32,
}

impl StackUse {
    /// Counts a stack that needed so much.
    pub(crate) fn count(&mut self, needed: u32) {
        self.hits += 1;
        self.most = self.most.max(needed);
    }

    /// Counts a stack that was cut for lack of room, of which it had so much.
    pub(crate) fn count_cut(&mut self, room: u32) {
        self.count(room);
        if room > self.cut_room {
            (self.cut, self.cut_room) = (0, room);
        }
        self.cut += u64::from(room == self.cut_room);
    }

    /// Number of stacks for which this much room was too little.
    const fn cut_with(&self, room: u32) -> u64 {
        if self.cut_room >= room { self.cut } else { 0 }
    }
}

/// The size of the stacks of a sample id.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackSize {
    /// Index of the size.
    pub(super) index: usize,
    /// Stacks since the last change.
    hits: u64,
    cut: u64,
    /// The most that a stack needed in this window, and the number of stacks in it.
    most: u32,
    seen: u64,
    /// How often the window is doubled.
    doublings: u32,
    /// Whether the last change was to a smaller size that stacks needed less than half of.
    was_lowered: bool,
    lost: u64,
    /// Number of hits in which no larger size is chosen.
    wait: u64,
}

impl StackSize {
    /// The size to begin with.
    pub(super) fn new(index: usize) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Takes what stacks have needed, and the number of hits that were lost so far: losses choose no smaller size than the usual one.
    /// Returns whether another of `sizes` is chosen.
    pub(super) fn learn(&mut self, used: StackUse, lost: u64, sizes: &StackSizes) -> bool {
        let before = self.index;
        let Some(&size) = sizes.all.get(self.index) else {
            return false;
        };
        self.hits += used.hits;
        self.seen += used.hits;
        self.cut += used.cut_with(size);
        self.most = self.most.max(used.most);
        self.wait = self.wait.saturating_sub(used.hits);
        if lost > self.lost {
            self.lost = lost;
            self.wait = AFTER_LOSS;
            if self.index > sizes.first {
                self.choose(self.index - 1);
            }
        } else if self.cut > 0 && self.cut * CUT >= self.hits {
            if self.wait == 0 && self.index + 1 < sizes.all.len() {
                self.doublings += u32::from(self.was_lowered && self.doublings < MOST_DOUBLINGS);
                self.choose(self.index + 1);
            }
        } else if self.seen >= WINDOW << self.doublings {
            if self.most < size / 2 && self.index > 0 {
                self.choose(self.index - 1);
                self.was_lowered = true;
            }
            (self.most, self.seen) = (0, 0);
        }
        before != self.index
    }

    fn choose(&mut self, index: usize) {
        *self = Self {
            index,
            doublings: self.doublings,
            lost: self.lost,
            wait: self.wait,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> StackSizes {
        StackSizes {
            all: vec![512, 1024, 2048, 4096],
            first: 2,
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
    fn cut_stacks_get_more_room_at_once_and_small_ones_less_after_a_window() {
        let mut size = StackSize::new(2);
        let mut learn = |used: StackUse| {
            size.learn(used, 0, &sizes());
            size.index
        };
        assert_eq!(learn(used(255, 1023)), 2);
        assert_eq!(learn(used(1, 100)), 1, "256 hits that need less than half");
        assert_eq!(learn(used(1000, 600)), 1);
        // What was in the ring before the change says nothing of the size that is now.
        assert_eq!(learn(cut(1, 512)), 1);
        assert_eq!(learn(cut(1, 1024)), 1, "one in more than 256");
        assert_eq!(learn(cut(9, 1024)), 2);
        // The smaller size was too small: the next window is longer.
        assert_eq!(learn(used(256, 100)), 2);
        assert_eq!(learn(used(256, 100)), 1);
        assert_eq!(learn(cut(1, 1024)), 2);
        assert_eq!(learn(cut(1, 2048)), 3);
        assert_eq!(learn(cut(1, 4096)), 3, "the largest");
    }

    #[test]
    fn losses_take_what_is_more_than_usual() {
        let mut size = StackSize::new(3);
        assert!(size.learn(used(10, 4000), 1, &sizes()));
        assert!(!size.learn(used(10, 4000), 2, &sizes()));
        assert_eq!(size.index, 2);
        assert!(!size.learn(cut(100, 2048), 2, &sizes()), "not so soon");
        assert!(size.learn(cut(AFTER_LOSS, 2048), 2, &sizes()));
        assert_eq!(size.index, 3);
    }
}
