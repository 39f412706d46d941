//! Waiting for what another process does.

use std::time::{Duration, Instant};

/// Whether a condition becomes true within a time.
pub(crate) fn within(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Waits until a condition is true; fails after four minutes.
#[track_caller]
pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    let happened = within(Duration::from_secs(240), holds);
    assert!(happened, "{what} did not happen");
}
