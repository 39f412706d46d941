//! A recording's time in slices of one length. How much a figure varies between them is its noise.

/// Slices of each recording.
pub const SLICES: usize = 20;

/// A count in each slice.
pub(crate) type Counts = [u64; SLICES];

/// A part of each slice, 0 to 1.
pub(crate) type SliceParts = [f64; SLICES];

/// Adds the counts of another.
pub(crate) fn add(counts: &mut Counts, others: &Counts) {
    let pairs = counts.iter_mut().zip(others);
    pairs.for_each(|(count, other)| *count += other);
}

/// All slices together.
pub fn total(counts: &Counts) -> u64 {
    counts.iter().sum()
}
