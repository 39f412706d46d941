//! The running processes, with which the next file of a recording begins.

use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use usdtrec_watch::process_table::ProcessTable;

use crate::output::files::{Files, Switch};
use crate::recording::metadata::{self, Wanted};
use crate::recording::session::Session;

/// How long a new file may be delayed because the rings are never empty, or control groups are being read.
const NEW_FILE_LIMIT: Duration = Duration::from_secs(2);

/// The processes at one moment, and their records since then.
#[derive(Debug)]
pub(super) struct Snapshot {
    processes: Processes,
    /// When all processes had been read.
    complete: Option<Instant>,
    changes: Vec<u8>,
}

/// The records of the processes.
#[derive(Debug)]
enum Processes {
    Reading(JoinHandle<Vec<u8>>),
    /// Read by the recorder's own thread, because none could be started.
    Read(Vec<u8>),
}

impl Processes {
    fn is_read(&self) -> bool {
        match self {
            Self::Reading(thread) => thread.is_finished(),
            Self::Read(_) => true,
        }
    }
}

impl Snapshot {
    /// Starts reading the processes, in a thread of its own. Takes those of a table if they cannot be read.
    pub(super) fn begin(session: &Session, known: Option<ProcessTable>) -> Self {
        let asked = (session.wanted_of_running(), known);
        let (give, given) = channel();
        let reading = move || given.recv().map(read).unwrap_or_default();
        let processes = match Builder::new().spawn(reading) {
            Ok(thread) => {
                // It waits for that.
                let _ = give.send(asked);
                Processes::Reading(thread)
            }
            Err(_) => Processes::Read(read(asked)),
        };
        Self {
            processes,
            complete: None,
            changes: Vec::new(),
        }
    }

    /// Adds process records.
    pub(super) fn add(&mut self, records: &[u8]) {
        self.changes.extend_from_slice(records);
    }

    /// Whether all processes have been read, and the hits of those that had ended by then are in the old file. To be called after each pass
    /// over the rings; `is_drained` is whether the pass emptied them, and what belongs to their hits was read.
    pub(super) fn is_ready(&mut self, is_drained: bool) -> bool {
        match self.complete {
            None => {
                self.complete = self.processes.is_read().then(Instant::now);
                false
            }
            // Hits may arrive faster than they are drained.
            Some(since) => is_drained || since.elapsed() >= NEW_FILE_LIMIT,
        }
    }

    /// Whether waiting any longer would make the old file much longer than its limit. Hits may be lost meanwhile.
    pub(super) fn is_overdue(switch: Switch, files: &Files) -> bool {
        matches!(switch, Switch::Size(bytes) if files.is_due(Switch::Size(bytes.saturating_mul(2))))
    }

    /// The records, oldest first.
    pub(super) fn records(self) -> [Vec<u8>; 2] {
        let processes = match self.processes {
            // Without these records hits have no process names, which does not justify ending the recording.
            Processes::Reading(thread) => thread.join().unwrap_or_default(),
            Processes::Read(records) => records,
        };
        [processes, self.changes]
    }
}

fn read((wanted, known): (Wanted, Option<ProcessTable>)) -> Vec<u8> {
    match known {
        Some(known) => known.records(),
        None => metadata::synthesise(&wanted).records,
    }
}
