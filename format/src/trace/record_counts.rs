//! Number and time range of a run of records.

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
    pub(crate) fn from_parts(records: u32, samples: u32, time: (u64, u64)) -> Self {
        let known = time.0 != 0 && time.0 <= time.1;
        let (earliest, latest) = if known { time } else { (0, 0) };
        Self {
            records,
            samples,
            earliest: earliest.wrapping_sub(1),
            latest,
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

    /// Earliest and latest time, if any record had one.
    pub(crate) fn time(&self) -> Option<(u64, u64)> {
        (self.latest != 0).then(|| (self.earliest.saturating_add(1), self.latest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be_are_none() {
        let time = |time| RecordCounts::from_parts(1, 1, time).time();
        assert_eq!(time((5, 7)), Some((5, 7)));
        assert_eq!(time((5, 5)), Some((5, 5)));
        for none in [(7, 5), (0, 0), (0, 5), (u64::MAX, 1)] {
            assert_eq!(time(none), None, "{none:?}");
        }
    }
}
