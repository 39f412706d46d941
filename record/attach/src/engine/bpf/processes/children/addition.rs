//! Links of probes that are added while recording, and of units that are detached and attached again.

use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use super::table::Table;
use crate::engine::bpf::attach::links::Links;

/// Maximum number of processes that links are created for one after the other: each takes the kernel about 10 ms, in which hits are missing.
const MAX_PROCESSES: usize = 4;

/// What the thread that gives processes their links is asked for.
#[derive(Debug)]
pub(super) enum LinkRequest {
    Add(Addition),
    /// Takes the links of a unit, which are to be closed.
    Detach {
        unit: usize,
        taken: Sender<Vec<OwnedFd>>,
    },
    /// Attaches a unit again.
    Attach {
        unit: usize,
        attached: Sender<io::Result<()>>,
    },
}

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
    pub(super) requests: Sender<LinkRequest>,
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
        self.ask(LinkRequest::Add(addition)).is_ok() && answer.recv().unwrap_or(false)
    }

    /// Takes the links of a unit, which are to be closed. Processes that begin from now on get none.
    ///
    /// # Errors
    /// The recording has ended.
    pub(in crate::engine::bpf) fn take_unit(&self, unit: usize) -> io::Result<Vec<OwnedFd>> {
        let (taken, answer) = channel();
        self.ask(LinkRequest::Detach { unit, taken })?;
        answer.recv().map_err(io::Error::other)
    }

    /// Attaches a unit again to the processes with links of their own, and from now on to those that get such links.
    ///
    /// # Errors
    /// The kernel refuses, or the recording has ended.
    pub(in crate::engine::bpf) fn attach_unit(&self, unit: usize) -> io::Result<()> {
        let (attached, answer) = channel();
        self.ask(LinkRequest::Attach { unit, attached })?;
        answer.recv().map_err(io::Error::other)?
    }

    fn ask(&self, request: LinkRequest) -> io::Result<()> {
        self.requests.send(request).map_err(io::Error::other)?;
        (&self.wake).write_all(&[0])
    }
}
