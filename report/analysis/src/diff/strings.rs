//! Which strings an argument holds, slice by slice.

use foldhash::HashMap;

use crate::diff::slices::{Counts, SLICES, add, total};
use crate::stats::frequency::{Frequency, sort_by_count};
use crate::stats::shape::shape;

/// Different strings that are counted one by one.
const MAX_STRINGS: usize = 4096;
/// Bytes of strings that are counted one by one.
const MAX_BYTES: usize = 1 << 20;

/// Counts of strings in each slice, in bounded memory: of strings that are too many to be counted one by one, their shapes are. Which strings are
/// then among those counted depends on the order they came in, until [`crate::diff::recount`] has replaced them by the most frequent ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlicedStrings {
    strings: CountedStrings,
    /// Shapes of those that did not fit.
    shapes: CountedStrings,
    /// Shapes of all strings, if these were counted apart.
    all_shapes: Option<CountedStrings>,
    /// All strings.
    pub(crate) all: Counts,
}

/// Different strings, at most so many as are counted one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountedStrings {
    counts: HashMap<Box<[u8]>, Counts>,
    /// Bytes of them.
    bytes: usize,
    /// Whether some did not fit.
    is_full: bool,
}

impl SlicedStrings {
    /// Counts a string.
    #[inline]
    pub(crate) fn add(&mut self, string: &[u8], slice: usize) {
        self.all[slice] += 1;
        if let Some(counts) = self.strings.counts.get_mut(string) {
            counts[slice] += 1;
        } else {
            let mut counts = [0; SLICES];
            counts[slice] = 1;
            self.add_new(string, &counts);
        }
    }

    #[cold]
    fn add_new(&mut self, string: &[u8], counts: &Counts) {
        if !self.strings.add(string, counts) {
            self.shapes.add(&shape(string), counts);
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: Self) {
        add(&mut self.all, &other.all);
        for (string, counts) in &other.strings.counts {
            self.add_new(string, counts);
        }
        self.strings.is_full |= other.strings.is_full;
        self.shapes.merge(&other.shapes);
    }

    /// The strings, one by one.
    pub(crate) const fn words(&self) -> &CountedStrings {
        &self.strings
    }

    /// Whether there were too many strings.
    pub(crate) const fn is_full(&self) -> bool {
        self.strings.is_full
    }

    /// Takes the strings that were counted instead, and the shapes if those were too many, too.
    pub(crate) fn replace(&mut self, strings: CountedStrings, shapes: Option<CountedStrings>) {
        self.all_shapes = Some(shapes.unwrap_or_else(|| self.shapes()));
        self.strings = strings;
        self.shapes = CountedStrings::default();
    }

    /// The shapes of all of them: what is left without numbers and quoted strings.
    pub(crate) fn shapes(&self) -> CountedStrings {
        if let Some(shapes) = &self.all_shapes {
            return shapes.clone();
        }
        let mut shapes = self.shapes.clone();
        for (string, counts) in &self.strings.counts {
            shapes.add(&shape(string), counts);
        }
        shapes
    }
}

impl CountedStrings {
    /// Different strings that are counted one by one.
    pub(crate) const MAX_STRINGS: usize = MAX_STRINGS;

    /// Whether some strings did not fit.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts a string, unless there are too many strings.
    pub(crate) fn add_one(&mut self, string: &[u8], slice: usize) {
        if let Some(known) = self.counts.get_mut(string) {
            known[slice] += 1;
            return;
        }
        let mut counts = [0; SLICES];
        counts[slice] = 1;
        self.add(string, &counts);
    }

    /// Adds the counts of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.is_full |= other.is_full;
        for (string, counts) in &other.counts {
            self.add(string, counts);
        }
    }

    /// Adds the counts of a string, unless there are too many strings.
    fn add(&mut self, string: &[u8], counts: &Counts) -> bool {
        if let Some(known) = self.counts.get_mut(string) {
            add(known, counts);
            return true;
        }
        let fits = self.counts.len() < MAX_STRINGS && self.bytes + string.len() <= MAX_BYTES;
        if fits {
            self.bytes += string.len();
            self.counts.insert(string.into(), *counts);
        }
        self.is_full |= !fits;
        fits
    }

    /// How often a string came.
    pub(crate) fn counts(&self, string: &[u8]) -> Counts {
        self.counts.get(string).copied().unwrap_or_default()
    }

    /// The most frequent strings, at most so many.
    pub(crate) fn first(&self, most: usize) -> Vec<&[u8]> {
        let counts = self.counts.iter();
        let counts = counts.map(|(string, counts)| Frequency::new(&**string, total(counts)));
        let mut by_count: Vec<Frequency<&[u8]>> = counts.collect();
        sort_by_count(&mut by_count);
        let first = by_count.into_iter().take(most);
        first.map(|string| string.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_counted_by_slice_and_beyond_the_bound_by_shape() {
        let mut strings = SlicedStrings::default();
        strings.add(b"a", 0);
        strings.add(b"b", 3);
        let mut others = SlicedStrings::default();
        others.add(b"b", 3);
        for at in 0..2 * MAX_STRINGS {
            others.add(format!("id {at}").as_bytes(), 19);
        }
        strings.merge(others);
        assert_eq!(strings.words().first(1), [b"b"]);
        assert_eq!(strings.words().counts(b"b")[3], 2);
        assert_eq!(strings.words().counts(b"none"), [0; SLICES]);
        assert_eq!(strings.words().counts.len(), MAX_STRINGS);
        assert_eq!(total(&strings.all), 3 + 2 * MAX_STRINGS as u64);
        let shapes = strings.shapes();
        assert_eq!(shapes.first(9), [&b"id ?"[..], b"b", b"a"]);
        assert_eq!(shapes.counts(b"id ?")[19], 2 * MAX_STRINGS as u64);
    }
}
