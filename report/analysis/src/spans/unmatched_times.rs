//! When ends without a begin came: whether the recording began in the middle of their spans.

/// Numbers of ends without a begin by the time since the first hit of the trace, in buckets of powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnmatchedTimes {
    buckets: [u64; 65],
}

impl UnmatchedTimes {
    /// Without any.
    pub(crate) const fn new() -> Self {
        Self { buckets: [0; 65] }
    }

    /// Counts an end so many ns after the first hit.
    pub(crate) fn add(&mut self, after: u64) {
        if let Some(bucket) = self.buckets.get_mut(bucket(after)) {
            *bucket += 1;
        }
    }

    /// How many came no later than so many ns after the first hit, or in the same bucket.
    pub(crate) fn within(&self, ns: u64) -> u64 {
        self.buckets.iter().take(bucket(ns) + 1).sum()
    }
}

/// The place of the bucket of a time.
const fn bucket(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        let mut times = UnmatchedTimes::new();
        for after in [0, 1, 5, 7, 8, u64::MAX] {
            times.add(after);
        }
        assert_eq!(
            [0, 1, 4, 8, u64::MAX].map(|ns| times.within(ns)),
            [1, 2, 4, 5, 6]
        );
    }
}
