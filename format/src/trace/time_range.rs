//! A range of times.

use crate::perf::cursor::Cursor;

/// The times from `first` to `last`, both included, ns of the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest time.
    pub first: u64,
    /// The latest time. A damaged file may claim one before `first`.
    pub last: u64,
}

impl TimeRange {
    /// All times.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// The range with these bounds.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Self {
        Self { first, last }
    }

    /// The range of one time.
    #[must_use]
    pub const fn at(time: u64) -> Self {
        Self::new(time, time)
    }

    /// Takes the first and the last time of a table in the file.
    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            first: cursor.u64()?,
            last: cursor.u64()?,
        })
    }

    /// Whether a time is in the range.
    #[must_use]
    #[inline]
    pub const fn contains(&self, time: u64) -> bool {
        self.first <= time && time <= self.last
    }

    /// Whether all of another range is in this one.
    #[must_use]
    pub const fn covers(&self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Whether the ranges have a time in common.
    #[must_use]
    pub const fn overlaps(&self, other: Self) -> bool {
        self.first <= other.last && self.last >= other.first
    }

    /// The least range that has both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// The least range that has this one, if there is one, and a time.
    #[must_use]
    #[inline]
    pub fn with(range: Option<Self>, time: u64) -> Self {
        let alone = Self::at(time);
        range.map_or(alone, |range| range.joined(alone))
    }
}
