//! What recorders left behind that were killed together with their guard processes.

use crate::engine::{StoppedProcess, abandoned_groups, stopped_processes};

/// What was left behind.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Processes that lossless recordings stopped.
    pub processes: Vec<StoppedProcess>,
    /// Groups of tracefs events, and whether they were removed.
    pub groups: Vec<(String, bool)>,
    /// Errors of places that could not be read.
    pub unreadable: Vec<String>,
}

/// Finds what was left behind. With `heal`, continues stopped processes and removes events. Does not affect live recorders, nor processes
/// that something else stopped.
#[must_use]
pub fn leftovers(heal: bool) -> Leftovers {
    let mut left = Leftovers::default();
    match stopped_processes(heal) {
        Ok(processes) => left.processes = processes,
        Err(error) => left.unreadable.push(format!("/run/usdtrec: {error}")),
    }
    match abandoned_groups(heal) {
        Ok(groups) => left.groups = groups,
        Err(error) => left.unreadable.push(error.to_string()),
    }
    left
}
