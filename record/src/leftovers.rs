//! What recorders left that were killed together with their guards.

use crate::engine::{StoppedProcess, abandoned_groups, stopped_processes};

/// What is left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Processes that `--lossless` stopped.
    pub processes: Vec<StoppedProcess>,
    /// Groups of tracefs events, and whether they were removed.
    pub groups: Vec<(String, bool)>,
    /// What could not be looked at.
    pub unreadable: Vec<String>,
}

/// Looks for what is left; with `heal` lets stopped processes go on and removes the events. Nothing of a recorder that lives, and no process
/// that somebody else stopped, is touched.
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
