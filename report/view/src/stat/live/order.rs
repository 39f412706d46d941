//! The order of the rows of a table that is shown again and again.

use std::cmp::Reverse;

use super::super::snapshot::SnapshotRow;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// The hits in the interval, the most first.
    #[default]
    Rate,
    /// The hits since the start, the most first.
    Total,
    /// Events and keys.
    Key,
}

impl RowOrder {
    /// All orders, each followed by the next one.
    const ALL: [Self; 3] = [Self::Rate, Self::Total, Self::Key];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Total => "total",
            Self::Key => "key",
        }
    }

    /// The next order; the first one after the last.
    #[must_use]
    pub fn next(self) -> Self {
        let mut all = Self::ALL.into_iter().cycle();
        all.find(|order| *order == self);
        all.next().unwrap_or_default()
    }

    /// Sorts rows that are in the order of events and keys. Equal ones stay in that order.
    pub(super) fn sort(self, rows: &mut [&SnapshotRow]) {
        match self {
            Self::Rate => {
                rows.sort_by_key(|row| Reverse((row.interval.count, row.total.count)));
            }
            Self::Total => rows.sort_by_key(|row| Reverse(row.total.count)),
            Self::Key => {}
        }
    }
}
