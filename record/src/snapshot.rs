//! Which processes run, for the file that a recording goes on with.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::files::{Files, Switch};
use crate::metadata;
use crate::session::Session;

/// How long a file may begin later because the rings are never empty.
const PATIENCE: Duration = Duration::from_secs(2);

/// The processes of one moment and what they did since: together all that is known of them at any later moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    processes: JoinHandle<Vec<u8>>,
    /// When it was seen that all have been read.
    complete: Option<Instant>,
    changes: Vec<u8>,
}

impl Snapshot {
    /// Begins to read them, in a thread of its own.
    pub(crate) fn begin(session: &Session) -> Self {
        let target = session.options.target.clone();
        let sample_type = session.attached.processes.attr.attr.id_type();
        Self {
            processes: std::thread::spawn(move || metadata::synthesise(&target, sample_type)),
            complete: None,
            changes: Vec::new(),
        }
    }

    /// Takes the records of what processes do from now on.
    pub(crate) const fn changes(&mut self) -> &mut Vec<u8> {
        &mut self.changes
    }

    /// Whether all have been read, and the hits of those that had ended by then are in the old file. To be asked after each pass over the
    /// rings; `is_drained` is whether that left nothing.
    pub(crate) fn is_ready(&mut self, is_drained: bool) -> bool {
        match self.complete {
            None => {
                self.complete = self.processes.is_finished().then(Instant::now);
                false
            }
            // Hits may come faster than they are taken.
            Some(since) => is_drained || since.elapsed() >= PATIENCE,
        }
    }

    /// Whether it can be waited for no longer, though hits may be lost meanwhile: the file would get much longer than it was to be.
    pub(crate) fn is_overdue(switch: Switch, files: &Files) -> bool {
        matches!(switch, Switch::Size(bytes) if files.is_due(Switch::Size(bytes.saturating_mul(2))))
    }

    /// The records, oldest first.
    pub(crate) fn records(self) -> [Vec<u8>; 2] {
        // Without the processes their hits have no names; that is no reason to end the recording.
        [self.processes.join().unwrap_or_default(), self.changes]
    }
}
