//! A recording's time in slices of one length. How much a figure varies between them is its noise.

/// Slices of each recording.
pub(super) const SLICES: usize = 20;

/// A count in each slice.
pub(super) type Counts = [u64; SLICES];

/// Adds the counts of another.
pub(super) fn add(counts: &mut Counts, others: &Counts) {
    let pairs = counts.iter_mut().zip(others);
    pairs.for_each(|(count, other)| *count += other);
}

/// All slices together.
pub(super) fn total(counts: &Counts) -> u64 {
    counts.iter().sum()
}
