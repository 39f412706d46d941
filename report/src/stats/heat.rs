//! Counts by interval and bucket.

use foldhash::HashMap;

/// Counts by interval and bucket.
pub(crate) type Cells = HashMap<(u32, i32), u64>;

/// Adds counts.
pub(crate) fn merge(all: &mut Cells, cells: Cells) {
    for (cell, count) in cells {
        *all.entry(cell).or_default() += count;
    }
}
