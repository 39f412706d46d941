//! The order of the rows of a table that is shown again and again.

use std::cmp::Reverse;

use usdtrec_analysis::counted_numbers::Percentiles;

use super::super::snapshot::SnapshotRow;

usdtrec_format::listed! {
    /// What rows are sorted by.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RowOrder {
        /// The hits or spans in the interval, the most first.
        #[default]
        Rate,
        /// The 99th percentile of the durations of spans in the interval, the longest first.
        P99,
        /// The longest spans of the interval first.
        Max,
        /// The median of the durations of spans in the interval, the longest first.
        P50,
        /// The hits or spans since the start, the most first.
        Total,
        /// Events and keys.
        Key,
    }
}

impl RowOrder {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P99 => "p99",
            Self::Max => "max",
            Self::P50 => "p50",
            Self::Total => "total",
            Self::Key => "key",
        }
    }

    /// Whether it is by durations.
    #[must_use]
    pub const fn is_of_spans(self) -> bool {
        matches!(self, Self::P99 | Self::Max | Self::P50)
    }

    /// The next order; the first one after the last. Without spans, none is by durations.
    pub(super) fn next(self, has_spans: bool) -> Self {
        let mut all = Self::ALL.into_iter().cycle();
        all.find(|order| *order == self);
        all.find(|order| has_spans || !order.is_of_spans())
            .unwrap_or_default()
    }

    /// Sorts rows that are in the order of events and keys. Equal ones stay in that order.
    pub(super) fn sort(self, rows: &mut [&SnapshotRow]) {
        match self {
            Self::Rate => {
                rows.sort_by_key(|row| Reverse((row.interval.count, row.total.count)));
            }
            Self::Total => rows.sort_by_key(|row| Reverse(row.total.count)),
            Self::Key => {}
            Self::P50 => rows.sort_by_cached_key(|row| Reverse(percentile(row, |all| all.p50))),
            Self::P99 => rows.sort_by_cached_key(|row| Reverse(percentile(row, |all| all.p99))),
            Self::Max => rows.sort_by_key(|row| {
                let ends = row.durations().and_then(|durations| durations.ends);
                Reverse(ends.filter(|_| row.interval.count > 0).map(|ends| ends.max))
            }),
        }
    }
}

/// A percentile of the spans of a row; `None` if none ended in the interval.
fn percentile(row: &SnapshotRow, of: fn(Percentiles) -> i128) -> Option<i128> {
    let distribution = row.durations()?.facts().distribution?;
    distribution.percentiles.map(of)
}
