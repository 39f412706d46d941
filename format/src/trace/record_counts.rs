//! Number and time range of a run of records, and totals of a trace.

use super::time_range::TimeRange;

/// Number and time range of a run of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordCounts {
    /// Number of records.
    pub(crate) records: u32,
    /// Number of samples among them.
    pub(crate) samples: u32,
    /// Earliest time minus 1; `u64::MAX` without times. So a time of 0, which means no time, wraps to the largest number.
    earliest: u64,
    /// Latest time; 0 without times.
    latest: u64,
}

/// Totals of a written trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of samples.
    pub samples: u64,
    /// Length of the records before compression, bytes.
    pub raw_bytes: u64,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

impl Default for RecordCounts {
    fn default() -> Self {
        Self {
            records: 0,
            samples: 0,
            earliest: u64::MAX,
            latest: 0,
        }
    }
}

impl RecordCounts {
    /// Counts read from a file. Times of 0, and invalid time ranges, mean that there are no times.
    pub(crate) fn from_parts(records: u32, samples: u32, time: TimeRange) -> Self {
        let known = time.first != 0 && time.first <= time.last;
        let TimeRange { first, last } = if known { time } else { TimeRange::default() };
        Self {
            records,
            samples,
            earliest: first.wrapping_sub(1),
            latest: last,
        }
    }

    /// Counts a record. A `time` of 0 means that it has no time.
    #[inline]
    pub(crate) fn count(&mut self, sample: bool, time: u64) {
        self.records += 1;
        self.samples += u32::from(sample);
        self.earliest = self.earliest.min(time.wrapping_sub(1));
        self.latest = self.latest.max(time);
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.records = self.records.saturating_add(other.records);
        self.samples = self.samples.saturating_add(other.samples);
        self.earliest = self.earliest.min(other.earliest);
        self.latest = self.latest.max(other.latest);
    }

    /// Times of the records, if any has one.
    pub(crate) fn time(&self) -> Option<TimeRange> {
        (self.latest != 0).then(|| TimeRange {
            first: self.earliest.saturating_add(1),
            last: self.latest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_none() {
        let time = |first, last| RecordCounts::from_parts(1, 1, TimeRange { first, last }).time();
        for (first, last) in [(5, 7), (5, 5)] {
            assert_eq!(time(first, last), Some(TimeRange { first, last }));
        }
        for (first, last) in [(7, 5), (0, 0), (0, 5), (u64::MAX, 1)] {
            assert_eq!(time(first, last), None, "{first} {last}");
        }
    }
}
