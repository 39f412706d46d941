//! Attaching probes: signals that end it, and cautions about its cost.

use std::fmt;
use std::io;

use crate::recording::signals::Signals;

/// Callbacks of attaching.
#[derive(Clone, Copy)]
pub struct Planting<'a> {
    /// Signals, each of which ends attaching.
    pub signals: &'a Signals,
    /// Called with what the user should know before the recording begins.
    pub say: &'a dyn Fn(&Caution),
}

/// What the user should know before the recording begins.
#[derive(Debug)]
pub enum Caution {
    /// There are many perf events, which the kernel removes one after the other.
    SlowEnd {
        /// Number of events.
        events: usize,
        /// Expected duration, seconds.
        seconds: usize,
    },
    /// Processes that a killed recorder had stopped were continued.
    Continued {
        /// Process ids.
        pids: Vec<u32>,
    },
    /// Processes are never stopped, because they read the recorder's output: hits of theirs may be lost.
    NeverStopped {
        /// Process ids.
        pids: Vec<u32>,
    },
    /// Processes stay stopped if the recorder and its guard process are both killed: this error of keeping the map of stopped processes.
    NotKept(io::Error),
}

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
            Self::NeverStopped { pids } => write!(
                f,
                "processes that read the output of this recording are never stopped, so that hits of theirs may be lost: {pids:?}"
            ),
            Self::NotKept(error) => write!(
                f,
                "if this recorder and its guard process are both killed, processes stay stopped, and cannot be found again: {error}"
            ),
        }
    }
}

impl fmt::Debug for Planting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Planting")
    }
}
