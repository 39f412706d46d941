//! Which texts an argument holds, slice by slice.

use foldhash::HashMap;

use crate::diff::slices::{Counts, SLICES, add, total};
use crate::stats::frequency::{Frequency, sort_by_count};
use crate::stats::shape::shape;

/// Different texts that are counted one by one.
const MAX_TEXTS: usize = 4096;
/// Bytes of texts that are counted one by one.
const MAX_BYTES: usize = 1 << 20;

/// Counts of texts in each slice, in bounded memory: of texts that are too many to be counted one by one, their shapes are. Which texts are
/// then among those counted depends on the order they came in, until [`crate::diff::recount`] has replaced them by the most frequent ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlicedTexts {
    texts: CountedTexts,
    /// Shapes of those that did not fit.
    shapes: CountedTexts,
    /// Shapes of all texts, if these were counted apart.
    all_shapes: Option<CountedTexts>,
    /// All texts.
    pub(crate) all: Counts,
}

/// Different texts, at most so many as are counted one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountedTexts {
    counts: HashMap<Box<[u8]>, Counts>,
    /// Bytes of them.
    bytes: usize,
    /// Whether some did not fit.
    is_full: bool,
}

impl SlicedTexts {
    /// Counts a text.
    #[inline]
    pub(crate) fn add(&mut self, text: &[u8], slice: usize) {
        self.all[slice] += 1;
        if let Some(counts) = self.texts.counts.get_mut(text) {
            counts[slice] += 1;
        } else {
            let mut counts = [0; SLICES];
            counts[slice] = 1;
            self.add_new(text, &counts);
        }
    }

    #[cold]
    fn add_new(&mut self, text: &[u8], counts: &Counts) {
        if !self.texts.add(text, counts) {
            self.shapes.add(&shape(text), counts);
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        add(&mut self.all, &other.all);
        for (text, counts) in &other.texts.counts {
            self.add_new(text, counts);
        }
        self.texts.is_full |= other.texts.is_full;
        self.shapes.merge(&other.shapes);
    }

    /// The texts, one by one.
    pub(crate) const fn words(&self) -> &CountedTexts {
        &self.texts
    }

    /// Whether there were too many texts.
    pub(crate) const fn is_full(&self) -> bool {
        self.texts.is_full
    }

    /// Takes the texts that were counted instead, and the shapes if those were too many, too.
    pub(crate) fn replace(&mut self, texts: CountedTexts, shapes: Option<CountedTexts>) {
        self.all_shapes = Some(shapes.unwrap_or_else(|| self.shapes()));
        self.texts = texts;
        self.shapes = CountedTexts::default();
    }

    /// The shapes of all of them: what is left without numbers and quoted texts.
    pub(crate) fn shapes(&self) -> CountedTexts {
        if let Some(shapes) = &self.all_shapes {
            return shapes.clone();
        }
        let mut shapes = self.shapes.clone();
        for (text, counts) in &self.texts.counts {
            shapes.add(&shape(text), counts);
        }
        shapes
    }
}

impl CountedTexts {
    /// Different texts that are counted one by one.
    pub(crate) const MAX_TEXTS: usize = MAX_TEXTS;

    /// Whether some texts did not fit.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts a text, unless there are too many texts.
    pub(crate) fn add_one(&mut self, text: &[u8], slice: usize) {
        if let Some(known) = self.counts.get_mut(text) {
            known[slice] += 1;
            return;
        }
        let mut counts = [0; SLICES];
        counts[slice] = 1;
        self.add(text, &counts);
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.is_full |= other.is_full;
        for (text, counts) in &other.counts {
            self.add(text, counts);
        }
    }

    /// Adds the counts of a text, unless there are too many texts.
    fn add(&mut self, text: &[u8], counts: &Counts) -> bool {
        if let Some(known) = self.counts.get_mut(text) {
            add(known, counts);
            return true;
        }
        let fits = self.counts.len() < MAX_TEXTS && self.bytes + text.len() <= MAX_BYTES;
        if fits {
            self.bytes += text.len();
            self.counts.insert(text.into(), *counts);
        }
        self.is_full |= !fits;
        fits
    }

    /// How often a text came.
    pub(crate) fn counts(&self, text: &[u8]) -> Counts {
        self.counts.get(text).copied().unwrap_or_default()
    }

    /// The most frequent texts, at most so many.
    pub(crate) fn first(&self, most: usize) -> Vec<&[u8]> {
        let counts = self.counts.iter();
        let counts = counts.map(|(text, counts)| Frequency::new(&**text, total(counts)));
        let mut by_count: Vec<Frequency<&[u8]>> = counts.collect();
        sort_by_count(&mut by_count);
        let first = by_count.into_iter().take(most);
        first.map(|text| text.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_by_slice_and_beyond_the_bound_by_shape() {
        let mut texts = SlicedTexts::default();
        texts.add(b"a", 0);
        texts.add(b"b", 3);
        let mut others = SlicedTexts::default();
        others.add(b"b", 3);
        for at in 0..2 * MAX_TEXTS {
            others.add(format!("id {at}").as_bytes(), 19);
        }
        texts.merge(others);
        assert_eq!(texts.words().first(1), [b"b"]);
        assert_eq!(texts.words().counts(b"b")[3], 2);
        assert_eq!(texts.words().counts(b"none"), [0; SLICES]);
        assert_eq!(texts.words().counts.len(), MAX_TEXTS);
        assert_eq!(total(&texts.all), 3 + 2 * MAX_TEXTS as u64);
        let shapes = texts.shapes();
        assert_eq!(shapes.first(9), [&b"id ?"[..], b"b", b"a"]);
        assert_eq!(shapes.counts(b"id ?")[19], 2 * MAX_TEXTS as u64);
    }
}
