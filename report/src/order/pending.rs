//! Blocks that are decoded and not yet wholly shown.

/// A sample's place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// ns.
    pub(crate) time: u64,
    /// Offset of its record in the block's records.
    pub(crate) offset: u32,
}

/// A block in memory, the samples asked for sorted by time.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Index of the block in the file's order.
    pub(crate) block: usize,
    /// Its records.
    pub(crate) bytes: Vec<u8>,
    /// Those of its samples that are asked for, in the order of time, and of the file where times are equal.
    pub(crate) keys: Vec<Key>,
    /// How many of them are shown.
    pub(crate) shown: usize,
    /// Samples in it that belong to no event of the trace.
    pub(crate) unknown: u64,
}

/// A place in the order of samples: a time, and a block that decides where times are equal.
pub(crate) type Mark = (u64, usize);

impl Loaded {
    /// How many samples stand before a mark; all, if there is none.
    pub(super) fn before(&self, mark: Option<Mark>) -> usize {
        mark.map_or(self.keys.len(), |(time, block)| {
            self.keys
                .partition_point(|key| (key.time, self.block) < (time, block))
        })
    }
}

/// A sample's place among several blocks: the order is that of time, then of blocks, then of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) time: u64,
    /// Index among the blocks in memory, which stand in the file's order.
    pub(crate) slot: u32,
    pub(crate) offset: u32,
}

/// Divides the samples up to `ends` of each block into windows, one after the other in time, of about
/// `size` samples. Samples of one time are all in one window.
pub(super) fn windows(blocks: &[Loaded], ends: &[usize], size: usize) -> Vec<Vec<(usize, usize)>> {
    let due = || {
        blocks
            .iter()
            .zip(ends)
            .map(|(block, &end)| (block, block.shown..end))
    };
    let total: usize = due().map(|(_, range)| range.len()).sum();
    let count = total.div_ceil(size.max(1)).max(1);
    // So many samples of each block between two that are looked at, that dozens fall into each window.
    let step = (size / 32).max(1);
    let mut times: Vec<u64> = due()
        .flat_map(|(block, range)| block.keys[range].iter().step_by(step).map(|key| key.time))
        .collect();
    times.sort_unstable();
    let mut bounds: Vec<u64> = (1..count)
        .filter_map(|window| times.get(window * times.len() / count).copied())
        .collect();
    bounds.dedup();
    let mut starts: Vec<usize> = due().map(|(_, range)| range.start).collect();
    let mut windows = Vec::with_capacity(bounds.len() + 1);
    for bound in bounds.into_iter().map(Some).chain([None]) {
        let window = due()
            .zip(&mut starts)
            .map(|((block, range), start)| {
                let rest = &block.keys[*start..range.end];
                let taken = bound.map_or(rest.len(), |time| {
                    rest.partition_point(|key| key.time < time)
                });
                let from = *start;
                *start += taken;
                (from, *start)
            })
            .collect();
        windows.push(window);
    }
    windows
}

/// The samples of a window in order.
pub(super) fn merged(blocks: &[Loaded], window: &[(usize, usize)]) -> Vec<Entry> {
    let count = window.iter().map(|(from, to)| to - from).sum();
    let mut entries = Vec::with_capacity(count);
    let mut parts = 0;
    for (slot, (block, &(from, to))) in (0..).zip(blocks.iter().zip(window)) {
        parts += usize::from(to > from);
        entries.extend(block.keys[from..to].iter().map(|key| Entry {
            time: key.time,
            slot,
            offset: key.offset,
        }));
    }
    if parts > 1 {
        // Finds the sorted runs of the parts and merges them.
        entries.sort_by_key(|entry| entry.time);
    }
    entries
}
