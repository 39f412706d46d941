//! The number of hits of each sample id, in the control map.

/// A word of a sample id. Where programs match no spans, there is only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::engine::bpf) enum HitWord {
    /// Hits of events of no span that are in no group.
    Ungrouped,
    /// Begins that are kept.
    Begun,
    /// Begins that are not kept, as many spans of their key are open.
    Deep,
    /// Begins that are not kept for another reason.
    Full,
    /// Begins and ends whose key cannot be read.
    Unkeyed,
    /// Ends with a begin.
    Ended,
    /// Ends without a begin.
    Unmatched,
    /// Ends of begins that are not kept.
    DeepEnd,
    /// Of ends with a begin, those whose group has no room.
    UngroupedEnd,
    /// The same, of spans that are too short.
    Short,
    /// Begins within a span that ended before they had an end.
    Unfinished,
    /// Ends that are equal to an older begin than the one that they take.
    Older,
}

impl HitWord {
    /// Number of words of a sample id where programs match spans.
    pub(in crate::engine::bpf) const ALL: u32 = Self::Older as u32 + 1;
    /// Number of the first words that count each hit once.
    const OF_HITS: u32 = Self::DeepEnd as u32 + 1;
}

/// Where the control map of a part has the counts: several rows with one or more words for each sample id. CPUs use different rows, so that seldom two
/// of them write to one cache line; all of a site's words are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct HitCounts {
    /// Offset of the first row in the control map.
    pub(super) first: u32,
    /// Size of a row, bytes.
    pub(super) row: u32,
    /// Number of rows, a power of two.
    pub(super) rows: u32,
    /// Number of words of a sample id.
    each: u32,
}

/// What hits are counted of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct CountedIds {
    /// Number of sample ids.
    pub ids: u32,
    /// Number of words of each.
    pub each: u32,
}

/// Size of a cache line, bytes.
const LINE: u32 = 64;
/// Maximum number of rows. More CPUs share them.
const MAX_ROWS: u32 = 64;
/// Maximum size of several rows, bytes: before Linux 5.14 the value of a map has 4 MiB at most.
const MAX_BYTES: u32 = 1 << 20;

impl HitCounts {
    /// Counts for so many CPUs, after the `words` bytes of the control map that other words take.
    pub(in crate::engine::bpf) fn new(
        words: u32,
        CountedIds { ids, each }: CountedIds,
        cpus: usize,
    ) -> Self {
        let row = (8 * each * ids.max(1)).next_multiple_of(LINE);
        let most = (MAX_BYTES / row).clamp(1, MAX_ROWS);
        let cpus = u32::try_from(cpus).unwrap_or(MAX_ROWS).max(1);
        let wanted = cpus.min(MAX_ROWS).next_power_of_two();
        Self {
            first: words.next_multiple_of(LINE),
            row,
            rows: wanted.min(1 << most.ilog2()),
            each,
        }
    }

    /// Size of the words of a sample id, bytes.
    pub(super) const fn id_bytes(self) -> u32 {
        8 * self.each
    }

    /// Offset of the end of the last row.
    pub(in crate::engine::bpf) const fn end(self) -> u32 {
        self.first + self.row * self.rows
    }

    /// Offsets of the words that count each hit of a sample id once, by its index.
    pub(in crate::engine::bpf) fn words(self, index: usize) -> impl Iterator<Item = u32> {
        let words = self.each.min(HitWord::OF_HITS);
        (0..words).flat_map(move |word| self.offsets(index, word))
    }

    /// Offsets of one word of a sample id in all rows.
    pub(in crate::engine::bpf) fn word(
        self,
        index: usize,
        word: HitWord,
    ) -> impl Iterator<Item = u32> {
        self.offsets(index, word as u32)
    }

    fn offsets(self, index: usize, word: u32) -> impl Iterator<Item = u32> {
        let at = self.first + self.id_bytes() * index as u32 + 8 * word;
        (0..self.rows).map(move |number| at + number * self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedIds, HitCounts, HitWord};

    #[test]
    fn rows_are_apart_and_bounded() {
        let few = HitCounts::new(100, CountedIds { ids: 3, each: 1 }, 6);
        assert_eq!(
            few.words(2).collect::<Vec<_>>()[..3],
            [128 + 16, 192 + 16, 256 + 16]
        );
        assert_eq!(few.words(0).count(), 8);
        assert_eq!(few.end(), 128 + 8 * 64);
        let several = HitCounts::new(
            100,
            CountedIds {
                ids: 3,
                each: HitWord::ALL,
            },
            2,
        );
        let last = several.word(2, HitWord::Older).last();
        assert!(last.is_some_and(|last| last + 8 <= several.end()));
        assert_eq!(several.words(0).count(), 2 * 8);
        for (ids, cpus, rows) in [(1, 8192, 64), (10_000, 8192, 8), (1_000_000, 2, 1)] {
            let counts = HitCounts::new(64, CountedIds { ids, each: 1 }, cpus);
            assert_eq!(counts.words(0).count(), rows, "{ids} ids, {cpus} CPUs");
        }
    }
}
