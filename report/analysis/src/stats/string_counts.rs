//! Which strings an argument holds, and how often.

use foldhash::HashMap;

use crate::stats::frequency::{Frequency, sort_by_count};

/// Different strings that are counted one by one; beyond them, only that there were others.
const MAX_STRINGS: usize = StringCounts::MAX_STRINGS;
/// Bytes of strings that are counted one by one.
const MAX_BYTES: usize = 1 << 20;

/// Counts of strings, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct StringCounts {
    counts: HashMap<Box<[u8]>, u64>,
    /// Bytes of those.
    bytes: usize,
    /// Strings that were not counted one by one.
    others: u64,
    /// Strings that are not whole.
    cut: u64,
}

impl StringCounts {
    /// Different strings that are counted one by one.
    pub(crate) const MAX_STRINGS: usize = 4096;

    /// Replaces the counts; `others` is the number of strings that are not in them.
    pub(crate) fn replace(&mut self, counts: Self, others: u64) {
        self.counts = counts.counts;
        self.bytes = counts.bytes;
        self.others = counts.others + others;
    }

    /// Counts that a string is not whole.
    pub(crate) const fn add_cut(&mut self) {
        self.cut += 1;
    }

    /// Strings that are not whole.
    pub(crate) const fn cut(&self) -> u64 {
        self.cut
    }

    /// Counts a string.
    #[inline]
    pub(crate) fn add(&mut self, string: &[u8]) {
        match self.counts.get_mut(string) {
            Some(count) => *count += 1,
            None => self.add_new(string, 1),
        }
    }

    #[cold]
    fn add_new(&mut self, string: &[u8], times: u64) {
        if self.counts.len() < MAX_STRINGS && self.bytes + string.len() <= MAX_BYTES {
            self.bytes += string.len();
            self.counts.insert(string.into(), times);
        } else {
            self.others += times;
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        for (string, times) in other.counts {
            match self.counts.get_mut(&string) {
                Some(count) => *count += times,
                None => self.add_new(&string, times),
            }
        }
        self.others += other.others;
        self.cut += other.cut;
    }

    /// Number of strings counted.
    pub(crate) fn count(&self) -> u64 {
        self.counts.values().sum::<u64>() + self.others
    }

    /// Number of strings without a count of their own.
    pub(crate) const fn others(&self) -> u64 {
        self.others
    }

    /// The strings with their counts, the most frequent first.
    pub(crate) fn by_count(&self) -> Vec<Frequency<&[u8]>> {
        let counts = self.counts.iter();
        let counts = counts.map(|(string, &count)| Frequency::new(&**string, count));
        let mut counts: Vec<Frequency<&[u8]>> = counts.collect();
        sort_by_count(&mut counts);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_counted_and_merged() {
        let mut strings = StringCounts::default();
        for string in [&b"b"[..], b"a", b"a", b"c"] {
            strings.add(string);
        }
        let mut other = StringCounts::default();
        other.add(b"c");
        other.add(b"c");
        strings.merge(other);
        assert_eq!(strings.count(), 6);
        let counts = [(&b"c"[..], 3), (b"a", 2), (b"b", 1)];
        let counts = counts.map(|(string, count)| Frequency::new(string, count));
        assert_eq!(strings.by_count(), counts);
    }

    #[test]
    fn the_number_of_strings_is_bounded() {
        let mut strings = StringCounts::default();
        for at in 0..2 * MAX_STRINGS as u64 {
            strings.add(&at.to_le_bytes());
        }
        assert_eq!(strings.by_count().len(), MAX_STRINGS);
        assert_eq!(strings.others(), MAX_STRINGS as u64);
        assert_eq!(strings.count(), 2 * MAX_STRINGS as u64);
        let mut long = StringCounts::default();
        for at in 0..100 {
            long.add(&[at; 60_000]);
        }
        assert_eq!(long.by_count().len(), MAX_BYTES / 60_000);
        assert_eq!(long.count(), 100);
    }
}
