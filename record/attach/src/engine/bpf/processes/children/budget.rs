//! The total time for which processes may be held.

use std::time::Duration;

/// Maximum budget.
const MAX_BUDGET: Duration = Duration::from_millis(500);

/// Part of the elapsed time that is added to the budget.
const PART: u32 = 20;

/// Time for which processes may be held: half a second, and a twentieth of the elapsed time. Times are those of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
    /// When it was last spent.
    last: Duration,
}

impl Budget {
    pub(super) const fn new(now: Duration) -> Self {
        Self {
            left: MAX_BUDGET,
            last: now,
        }
    }

    /// Spends the time from `since` to `now`, except for time that was spent for another process that was held at the same time. Returns
    /// whether the budget was sufficient.
    pub(super) fn spend(&mut self, since: Duration, now: Duration) -> bool {
        let since = since.max(self.last);
        let earned = now.saturating_sub(self.last) / PART;
        let spent = now.saturating_sub(since);
        let had = (self.left + earned).min(MAX_BUDGET);
        self.left = had.saturating_sub(spent);
        self.last = now.max(self.last);
        spent <= had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn half_a_second_and_a_twentieth() {
        let mut budget = Budget::new(at(1000));
        assert!(budget.spend(at(1000), at(1300)));
        assert!(!budget.spend(at(1300), at(1600)));
        // Nothing is left; 2 s add 100 ms.
        assert!(budget.spend(at(3500), at(3600)));
        assert!(!budget.spend(at(3600), at(3650)));
        // The budget never exceeds half a second.
        assert!(budget.spend(at(90_000), at(90_500)));
        assert!(!budget.spend(at(90_500), at(90_600)));
    }

    #[test]
    fn several_are_held_at_once() {
        let mut budget = Budget::new(at(0));
        for until in [100, 200, 300, 400, 500] {
            assert!(budget.spend(at(0), at(until)));
        }
        assert!(!budget.spend(at(0), at(600)));
    }
}
