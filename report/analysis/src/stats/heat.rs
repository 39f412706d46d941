//! Counts by interval and bucket.

use foldhash::HashMap;

/// Counts by interval and bucket.
pub(crate) type Cells = HashMap<HeatCell, u64>;

/// An interval, and a bucket of numbers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeatCell {
    pub(crate) interval: u32,
    pub(crate) bucket: i32,
}

/// Adds counts.
pub(crate) fn merge(all: &mut Cells, cells: Cells) {
    for (cell, count) in cells {
        *all.entry(cell).or_default() += count;
    }
}
