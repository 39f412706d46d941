//! How long process records accumulate before they are read.
//!
//! Probes of files that appear are planted later by this time. So the first records after a quiet time are read at once, and when programs begin
//! one after the other, their records are read together.

use std::time::{Duration, Instant};

/// Interval between passes for process records while they keep coming.
const INTERVAL: Duration = Duration::from_millis(5);
/// Time in which records accumulate after a quiet time: those of one `execve(2)` follow each other within it.
const PROMPT_TIME: Duration = Duration::from_micros(300);
/// Number of passes that begin after [`PROMPT_TIME`] before others begin at [`INTERVAL`]. A program that begins needs about five: for `fork(2)`,
/// `execve(2)`, its libraries, and its end.
const PROMPT_PASSES: u32 = 16;

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
        assert!((16..=18).contains(&prompt), "{times:?}");
        assert_eq!(times.last(), Some(&INTERVAL));
        assert!(now - start > INTERVAL * 82);
        assert_eq!(pace.next(now + INTERVAL * PROMPT_PASSES), PROMPT_TIME);
    }
}
