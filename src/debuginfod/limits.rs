//! How long a server may take, and how much it may send.

use std::time::Duration;

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum time without an answer, or without further bytes.
    pub(super) pause: Duration,
    /// Maximum time of a request.
    pub(super) time: Duration,
    /// Maximum size of a file, bytes.
    pub(super) size: u64,
}

impl Limits {
    /// What `$DEBUGINFOD_TIMEOUT`, `$DEBUGINFOD_MAXTIME` and `$DEBUGINFOD_MAXSIZE` say. Unlike in libdebuginfod, the last two have a bound without that, too.
    pub(super) fn from_env() -> Self {
        let seconds = |name, or| Duration::from_secs(number(name).unwrap_or(or).min(MAX_SECONDS));
        Self {
            pause: seconds("DEBUGINFOD_TIMEOUT", 90),
            time: seconds("DEBUGINFOD_MAXTIME", 600),
            size: number("DEBUGINFOD_MAXSIZE").unwrap_or(4 << 30),
        }
    }
}

/// Seconds of a year.
const MAX_SECONDS: u64 = 365 * 24 * 3600;

/// A number in the environment; 0, as for libdebuginfod, is no number.
fn number(name: &str) -> Option<u64> {
    let number = std::env::var(name).ok()?.trim().parse().ok()?;
    (number > 0).then_some(number)
}
