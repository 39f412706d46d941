//! The number of hits of each sample id, in the control map.

/// Where the control map of a part has the counts: several rows with a word for each sample id. CPUs use different rows, so that seldom two
/// of them write to one cache line; all of a site's words are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct HitCounts {
    /// Offset of the first row in the control map.
    pub(super) first: u32,
    /// Size of a row, bytes.
    pub(super) row: u32,
    /// Number of rows, a power of two.
    pub(super) rows: u32,
}

/// Size of a cache line, bytes.
const LINE: u32 = 64;
/// Maximum number of rows. More CPUs share them.
const MAX_ROWS: u32 = 64;
/// Maximum size of several rows, bytes: before Linux 5.14 the value of a map has 4 MiB at most.
const MAX_BYTES: u32 = 1 << 20;

impl HitCounts {
    /// Counts for so many sample ids and CPUs, after the `words` bytes of the control map that other words take.
    pub(in crate::engine::bpf) fn new(words: u32, ids: u32, cpus: usize) -> Self {
        let row = (8 * ids.max(1)).next_multiple_of(LINE);
        let most = (MAX_BYTES / row).clamp(1, MAX_ROWS);
        let cpus = u32::try_from(cpus).unwrap_or(MAX_ROWS).max(1);
        let wanted = cpus.min(MAX_ROWS).next_power_of_two();
        Self {
            first: words.next_multiple_of(LINE),
            row,
            rows: wanted.min(1 << most.ilog2()),
        }
    }

    /// Offset of the end of the last row.
    pub(in crate::engine::bpf) const fn end(self) -> u32 {
        self.first + self.row * self.rows
    }

    /// Offsets of the words of a sample id, by its index.
    pub(in crate::engine::bpf) fn words(self, index: usize) -> impl Iterator<Item = u32> {
        let Self { first, row, rows } = self;
        (0..rows).map(move |number| first + number * row + 8 * index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::HitCounts;

    #[test]
    fn rows_are_apart_and_bounded() {
        let few = HitCounts::new(100, 3, 6);
        assert_eq!(
            few.words(2).collect::<Vec<_>>()[..3],
            [128 + 16, 192 + 16, 256 + 16]
        );
        assert_eq!(few.words(0).count(), 8);
        assert_eq!(few.end(), 128 + 8 * 64);
        for (ids, cpus, rows) in [(1, 8192, 64), (10_000, 8192, 8), (1_000_000, 2, 1)] {
            let counts = HitCounts::new(64, ids, cpus);
            assert_eq!(counts.words(0).count(), rows, "{ids} ids, {cpus} CPUs");
        }
    }
}
