//! The running processes, with which the next file of a recording begins.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use usdtrec_watch::process_table::ProcessTable;

use crate::output::files::{Files, Switch};
use crate::recording::metadata;
use crate::recording::session::Session;

/// How long a new file may be delayed because the rings are never empty, or control groups are being read.
const NEW_FILE_LIMIT: Duration = Duration::from_secs(2);

/// The processes at one moment, and their records since then.
#[derive(Debug)]
pub(super) struct Snapshot {
    processes: JoinHandle<Vec<u8>>,
    /// When all processes had been read.
    complete: Option<Instant>,
    changes: Vec<u8>,
}

impl Snapshot {
    /// Starts reading the processes, in a thread of its own. Takes those of a table if they cannot be read.
    pub(super) fn begin(session: &Session, known: Option<ProcessTable>) -> Self {
        let wanted = session.wanted_of_running();
        let read = move || match known {
            Some(known) => known.records(),
            None => metadata::synthesise(&wanted).records,
        };
        Self {
            processes: std::thread::spawn(read),
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
                self.complete = self.processes.is_finished().then(Instant::now);
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
        // Without these records hits have no process names, which does not justify ending the recording.
        [self.processes.join().unwrap_or_default(), self.changes]
    }
}
