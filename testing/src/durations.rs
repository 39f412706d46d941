//! How long each test took.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The tests that have run, with their durations.
static DURATIONS: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Number of tests that are listed without `USDTREC_TEST_TIMES=all`.
const LISTED: usize = 30;

/// A run of fewer tests is not listed.
const MIN_TESTS: usize = 10;

/// Adds a test that has run, with its path.
pub(crate) fn add(path: String, duration: Duration) {
    let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    durations.push((duration, path));
}

/// A table of the longest tests, longest first; empty after a run of few tests. They run beside each other, so the sum is
/// longer than the run.
pub(crate) fn longest() -> String {
    let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let all = std::env::var("USDTREC_TEST_TIMES").is_ok_and(|value| value == "all");
    if durations.len() < MIN_TESTS && !all {
        return String::new();
    }
    durations.sort_by(|one, other| other.cmp(one));
    let sum: Duration = durations.iter().map(|(duration, _)| *duration).sum();
    let listed = if all { durations.len() } else { LISTED };
    let mut text = format!(
        "longest of {} tests, which took {:.1} s in all:\n",
        durations.len(),
        sum.as_secs_f64()
    );
    for (duration, path) in durations.iter().take(listed) {
        let _ = writeln!(text, "{:8.2} s  {path}", duration.as_secs_f64());
    }
    text
}
