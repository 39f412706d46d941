//! Which texts an argument holds, slice by slice.

use foldhash::HashMap;

use super::slices::{Counts, SLICES, add, total};

/// Different texts that are counted one by one.
const MOST: usize = 4096;
/// Bytes of texts that are counted one by one.
const MOST_BYTES: usize = 1 << 20;

/// Counts of texts in each slice, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    counts: HashMap<Box<[u8]>, Counts>,
    /// Bytes of those.
    bytes: usize,
    /// Texts of all, also of those beyond [`MOST`].
    pub(super) all: Counts,
}

impl Texts {
    /// Counts a text.
    #[inline]
    pub(super) fn add(&mut self, text: &[u8], slice: usize) {
        self.all[slice] += 1;
        match self.counts.get_mut(text) {
            Some(counts) => counts[slice] += 1,
            None => {
                let mut counts = [0; SLICES];
                counts[slice] = 1;
                self.add_new(text.into(), counts);
            }
        }
    }

    fn add_new(&mut self, text: Box<[u8]>, counts: Counts) {
        if self.counts.len() < MOST && self.bytes + text.len() <= MOST_BYTES {
            self.bytes += text.len();
            self.counts.insert(text, counts);
        }
    }

    /// Adds the counts of another.
    pub(super) fn merge(&mut self, other: Self) {
        add(&mut self.all, &other.all);
        for (text, counts) in other.counts {
            match self.counts.get_mut(&text) {
                Some(known) => add(known, &counts),
                None => self.add_new(text, counts),
            }
        }
    }

    /// How often a text came.
    pub(super) fn of(&self, text: &[u8]) -> Counts {
        self.counts.get(text).copied().unwrap_or_default()
    }

    /// The most frequent texts, at most so many.
    pub(super) fn first(&self, most: usize) -> Vec<&[u8]> {
        let counts = self.counts.iter();
        let mut by_count: Vec<(&[u8], u64)> = counts
            .map(|(text, counts)| (&**text, total(counts)))
            .collect();
        by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let first = by_count.into_iter().take(most);
        first.map(|(text, _)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_by_slice_and_bounded() {
        let mut texts = Texts::default();
        texts.add(b"a", 0);
        texts.add(b"b", 3);
        let mut others = Texts::default();
        others.add(b"b", 3);
        for at in 0..2 * MOST as u64 {
            others.add(&at.to_le_bytes(), 19);
        }
        texts.merge(others);
        assert_eq!(texts.first(1), [b"b"]);
        assert_eq!(texts.of(b"b")[3], 2);
        assert_eq!(texts.of(b"none"), [0; SLICES]);
        assert_eq!(texts.counts.len(), MOST);
        assert_eq!(total(&texts.all), 3 + 2 * MOST as u64);
    }
}
