//! What planting is done for: who can end it, and who is told what it will cost.

use std::fmt;

use crate::signals::Signals;

/// What a session's probes are planted with.
#[derive(Clone, Copy)]
pub struct Planting<'a> {
    /// Signals, of which each ends it.
    pub signals: &'a Signals,
    /// Is called with what the user should know before.
    pub say: &'a dyn Fn(&Caution),
}

/// What the user should know before the recording begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Many perf events, which the kernel removes one after the other.
    SlowEnd {
        /// How many.
        events: usize,
        /// Seconds that this will take.
        seconds: usize,
    },
    /// Processes go on that a recorder had stopped which was killed.
    Continued {
        /// Process ids.
        pids: Vec<u32>,
    },
    /// Processes stay stopped if the recorder and its guard are both killed.
    NotKept {
        /// Why.
        reason: String,
    },
}

/// So many perf events are announced.
const MANY: usize = 100;
/// What each takes the kernel, in milliseconds, as seen on Linux 6.18: grace periods of RCU under a lock of the whole kernel.
const EACH_MS: usize = 90;

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowEnd { events, seconds } => write!(
                f,
                "removing {events} events at the end takes the kernel about {seconds} s"
            ),
            Self::Continued { pids } => write!(
                f,
                "continued processes that a killed recorder had stopped: {pids:?}"
            ),
            Self::NotKept { reason } => write!(
                f,
                "if this recorder and its guard process are both killed, processes stay stopped, and cannot be found again: {reason}"
            ),
        }
    }
}

impl Planting<'_> {
    /// Announces the end of so many perf events, if that takes long.
    pub(crate) fn announce(&self, events: usize) {
        if events >= MANY {
            let seconds = (events * EACH_MS).div_ceil(1000);
            (self.say)(&Caution::SlowEnd { events, seconds });
        }
    }
}

impl fmt::Debug for Planting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planting")
    }
}
