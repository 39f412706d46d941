//! The bytes that gimli reads.

use gimli::{EndianSlice, RunTimeEndian};

/// What the readers of DWARF read from.
pub(super) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Whether one of the ranges has the address; damaged ones have none.
pub(super) fn covers(mut ranges: gimli::RangeIter<Slice<'_>>, pc: u64) -> bool {
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&pc) {
            return true;
        }
    }
    false
}
