//! Links of probes that are added while recording.

use std::io::{PipeWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use super::table::Table;
use crate::engine::bpf::attach::links::Links;

/// Maximum number of processes that links are created for one after the other: each takes the kernel about 10 ms, in which hits are missing.
const MAX_PROCESSES: usize = 4;

/// Links of added probes.
#[derive(Debug)]
pub(super) struct Addition {
    /// For processes that get links of their own.
    pub(super) own: Links,
    /// For the others, in all processes of the files.
    pub(super) everywhere: Links,
    /// Takes whether they were added.
    pub(super) added: Sender<bool>,
}

/// Adds links, in the thread that gives processes theirs.
#[derive(Debug)]
pub(in crate::engine::bpf) struct LinkAdder {
    pub(super) table: Arc<Table>,
    pub(super) additions: Sender<Addition>,
    pub(super) wake: PipeWriter,
}

impl LinkAdder {
    /// Whether there are few enough processes with links of their own.
    pub(in crate::engine::bpf) fn is_fast(&self) -> bool {
        self.table.processes() <= MAX_PROCESSES
    }

    /// Whether probes are attached to all processes of the files, too.
    pub(in crate::engine::bpf) fn is_everywhere(&self) -> bool {
        self.table.reason().is_some()
    }

    /// Attaches to the processes with links of their own, and from now on to those that get such links. If the kernel refuses, returns
    /// `false`, and links that were created are closed a little later.
    pub(in crate::engine::bpf) fn add(&self, own: Links, everywhere: Links) -> bool {
        let (added, answer) = channel();
        let addition = Addition {
            own,
            everywhere,
            added,
        };
        self.additions.send(addition).is_ok()
            && (&self.wake).write_all(&[0]).is_ok()
            && answer.recv().unwrap_or(false)
    }
}
