//! How long process records accumulate before they are read.
//!
//! Probes of files that appear are planted later by this time. So the first records after a quiet time are read at once, and when programs begin
//! one after the other, their records are read together.

use std::time::{Duration, Instant};

/// Interval between passes for process records while they keep coming: half of the time in which the probes of a file are to be planted.
const INTERVAL: Duration = Duration::from_millis(10);
/// Time in which records accumulate after a quiet time: most of those of a program that begins, from `fork(2)` to its libraries, follow each other
/// within it.
const PROMPT_TIME: Duration = Duration::from_millis(1);
/// Number of passes that begin after [`PROMPT_TIME`] before others begin at [`INTERVAL`]. A program that begins needs two or three: the last one for
/// its end.
const PROMPT_PASSES: u32 = 8;

/// Chooses the times.
#[derive(Debug, Default)]
pub(super) struct ProcessPace {
    /// When all passes so far would be over, one in each [`INTERVAL`].
    paid: Option<Instant>,
}

impl ProcessPace {
    /// How long records accumulate before the next pass, which begins after that time.
    pub(super) fn next(&mut self, now: Instant) -> Duration {
        let paid = self.paid.map_or(now, |paid| paid.max(now));
        self.paid = Some(paid + INTERVAL);
        let ahead = paid.saturating_duration_since(now);
        let excess = ahead.saturating_sub(INTERVAL * (PROMPT_PASSES - 1));
        excess.clamp(PROMPT_TIME, INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_records_are_read_at_once_and_a_flood_is_read_at_intervals() {
        let (mut pace, start) = (ProcessPace::default(), Instant::now());
        let mut now = start;
        let mut times = Vec::new();
        for _ in 0..100 {
            let time = pace.next(now);
            now += time;
            times.push(time);
        }
        let prompt = times.iter().filter(|time| **time == PROMPT_TIME).count();
        assert!((8..=10).contains(&prompt), "{times:?}");
        assert_eq!(times.last(), Some(&INTERVAL));
        assert!(now - start > INTERVAL * 90);
        assert_eq!(pace.next(now + INTERVAL * PROMPT_PASSES), PROMPT_TIME);
    }
}
