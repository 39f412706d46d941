//! Finding the entries of one thread or process among those of all.

use std::ops::Range;

/// Entries in the order of their number: a thread's or process's id.
pub(crate) trait Numbered {
    fn number(&self) -> i32;
}

/// Where entries of numbers begin, for parts of all numbers: two steps instead of twenty.
#[derive(Debug, Default)]
pub(crate) struct Index {
    first: i32,
    /// Bits of numbers that one part has.
    shift: u32,
    /// Index of the first entry of each part.
    starts: Vec<u32>,
}

impl Index {
    /// Most parts of all numbers.
    const PARTS: usize = 1 << 16;

    /// An index of entries in the order of their numbers; fewer than 2^32.
    pub(crate) fn new<T: Numbered>(entries: &[T]) -> Self {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Self::default();
        };
        let first = first.number();
        let span = last.number().abs_diff(first);
        // Not more than entries.
        let most = entries.len().min(Self::PARTS) as u32;
        let mut shift = 0;
        while span >> shift >= most {
            shift += 1;
        }
        let parts = (span >> shift) + 1;
        let mut at = 0;
        let starts = (0..=parts).map(|part| {
            let rest = entries.get(at..).unwrap_or_default();
            // Entries of a part are few, but for a forged file's.
            at += rest.partition_point(|entry| entry.number().abs_diff(first) >> shift < part);
            at as u32
        });
        Self {
            first,
            shift,
            starts: starts.collect(),
        }
    }

    /// The range of the entries of a number.
    pub(crate) fn range<T: Numbered>(&self, entries: &[T], number: i32) -> Range<usize> {
        if number < self.first {
            return 0..0;
        }
        let part = (number.abs_diff(self.first) >> self.shift) as usize;
        let start = |part: usize| self.starts.get(part).map(|start| *start as usize);
        let (Some(start), Some(end)) = (start(part), start(part + 1)) else {
            return 0..0;
        };
        let entries = entries.get(start..end).unwrap_or_default();
        let before = entries.partition_point(|entry| entry.number() < number);
        let after = entries.partition_point(|entry| entry.number() <= number);
        start + before..start + after
    }
}
