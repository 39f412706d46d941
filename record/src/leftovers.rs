//! What recorders left behind that were killed together with their guard processes.

use std::io;
use std::path::PathBuf;

use usdtrec_attach::engine::{AbandonedGroup, abandoned_groups};
use usdtrec_attach::error::RecordError;
use usdtrec_watch::left_breakpoints::{LeftBehind, left_breakpoints};
use usdtrec_watch::semaphores::{RaisedProcess, Repair, raised_processes};

use crate::triggers::requests::dead_sockets;

/// Tracefs events, semaphores, sockets and breakpoints that an ended recorder left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Processes with semaphores that were incremented by hand.
    pub raised: Vec<RaisedProcess>,
    /// Groups of tracefs events.
    pub groups: Vec<AbandonedGroup>,
    /// Sockets of recorders with a window.
    pub sockets: Vec<PathBuf>,
    /// Breakpoints in programs that no live recording has.
    pub breakpoints: LeftBehind,
    /// What could not be read.
    pub unreadable: Vec<LeftoversError>,
}

/// What was left behind cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftoversError {
    /// The notes of semaphores cannot be read.
    #[error("the notes of semaphores in /run/usdtrec: {0}")]
    Semaphores(io::Error),
    /// The notes of attached sites cannot be read.
    #[error("the notes of sites in /run/usdtrec: {0}")]
    Sites(io::Error),
    /// tracefs cannot be read.
    #[error(transparent)]
    Groups(#[from] RecordError),
}

/// Finds what was left behind. With `heal`, decrements semaphores, removes events and restores instructions; waits up to 15 s for killed recorders
/// that are still ending. Does not affect live recorders.
#[must_use]
pub fn leftovers(heal: bool) -> Leftovers {
    let mut left = Leftovers::default();
    let repair = if heal {
        Repair::UntilEnded
    } else {
        Repair::ReportOnly
    };
    match raised_processes(repair) {
        Ok(raised) => left.raised = raised,
        Err(error) => left.unreadable.push(LeftoversError::Semaphores(error)),
    }
    match abandoned_groups(heal) {
        Ok(groups) => left.groups = groups,
        Err(error) => left.unreadable.push(error.into()),
    }
    left.sockets = dead_sockets(heal);
    match left_breakpoints(heal) {
        Ok(breakpoints) => left.breakpoints = breakpoints,
        Err(error) => left.unreadable.push(LeftoversError::Sites(error)),
    }
    left
}
