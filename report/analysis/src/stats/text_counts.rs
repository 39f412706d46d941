//! Which texts an argument holds, and how often.

use foldhash::HashMap;

use crate::stats::frequency::{Frequency, sort_by_count};

/// Different texts that are counted one by one; beyond them, only that there were others.
const MAX_TEXTS: usize = TextCounts::MAX_TEXTS;
/// Bytes of texts that are counted one by one.
const MAX_BYTES: usize = 1 << 20;

/// Counts of texts, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextCounts {
    counts: HashMap<Box<[u8]>, u64>,
    /// Bytes of those.
    bytes: usize,
    /// Texts that were not counted one by one.
    others: u64,
    /// Texts that are not whole.
    cut: u64,
}

impl TextCounts {
    /// Different texts that are counted one by one.
    pub(crate) const MAX_TEXTS: usize = 4096;

    /// Replaces the counts; `others` is the number of texts that are not in them.
    pub(crate) fn replace(&mut self, counts: Self, others: u64) {
        self.counts = counts.counts;
        self.bytes = counts.bytes;
        self.others = counts.others + others;
    }

    /// Counts that a text is not whole.
    pub(crate) const fn add_cut(&mut self) {
        self.cut += 1;
    }

    /// Texts that are not whole.
    pub(crate) const fn cut(&self) -> u64 {
        self.cut
    }

    /// Counts a text.
    #[inline]
    pub(crate) fn add(&mut self, text: &[u8]) {
        match self.counts.get_mut(text) {
            Some(count) => *count += 1,
            None => self.add_new(text, 1),
        }
    }

    #[cold]
    fn add_new(&mut self, text: &[u8], times: u64) {
        if self.counts.len() < MAX_TEXTS && self.bytes + text.len() <= MAX_BYTES {
            self.bytes += text.len();
            self.counts.insert(text.into(), times);
        } else {
            self.others += times;
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        for (text, times) in other.counts {
            match self.counts.get_mut(&text) {
                Some(count) => *count += times,
                None => self.add_new(&text, times),
            }
        }
        self.others += other.others;
        self.cut += other.cut;
    }

    /// Number of texts counted.
    pub(crate) fn count(&self) -> u64 {
        self.counts.values().sum::<u64>() + self.others
    }

    /// Number of texts without a count of their own.
    pub(crate) const fn others(&self) -> u64 {
        self.others
    }

    /// The texts with their counts, the most frequent first.
    pub(crate) fn by_count(&self) -> Vec<Frequency<&[u8]>> {
        let counts = self.counts.iter();
        let counts = counts.map(|(text, &count)| Frequency::new(&**text, count));
        let mut counts: Vec<Frequency<&[u8]>> = counts.collect();
        sort_by_count(&mut counts);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_merged() {
        let mut texts = TextCounts::default();
        for text in [&b"b"[..], b"a", b"a", b"c"] {
            texts.add(text);
        }
        let mut other = TextCounts::default();
        other.add(b"c");
        other.add(b"c");
        texts.merge(other);
        assert_eq!(texts.count(), 6);
        let counts = [(&b"c"[..], 3), (b"a", 2), (b"b", 1)];
        let counts = counts.map(|(text, count)| Frequency::new(text, count));
        assert_eq!(texts.by_count(), counts);
    }

    #[test]
    fn the_number_of_texts_is_bounded() {
        let mut texts = TextCounts::default();
        for at in 0..2 * MAX_TEXTS as u64 {
            texts.add(&at.to_le_bytes());
        }
        assert_eq!(texts.by_count().len(), MAX_TEXTS);
        assert_eq!(texts.others(), MAX_TEXTS as u64);
        assert_eq!(texts.count(), 2 * MAX_TEXTS as u64);
        let mut long = TextCounts::default();
        for at in 0..100 {
            long.add(&[at; 60_000]);
        }
        assert_eq!(long.by_count().len(), MAX_BYTES / 60_000);
        assert_eq!(long.count(), 100);
    }
}
