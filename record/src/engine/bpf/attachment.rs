//! The descriptors that keep probes attached.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::release::Descriptors;
use super::attach_method::AttachMethod;
use super::links::Links;
use super::nonresident::Touch;
use super::skipped::{NotFaultedIn, SkippedMethod};

/// The descriptors that keep the probes attached.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) attach_method: AttachMethod,
    /// Whether memory that is not resident is brought in.
    pub(super) touch: Touch,
    /// Why it is not brought in although this was requested.
    pub(super) not_faulted_in: Option<NotFaultedIn>,
    /// The attach methods that were tried before this one, and why they do not work.
    pub(super) skipped: Vec<SkippedMethod>,
    /// The processes that the sites are attached to; `None` for all processes of the files.
    pub(super) processes: Option<Vec<u32>>,
    /// What is attached to the processes that these start.
    pub(super) later: Option<Later>,
    pub(super) links: Vec<OwnedFd>,
    pub(super) events: Vec<File>,
    pub(super) programs: Arc<Vec<OwnedFd>>,
}

/// What is attached to processes that recorded ones start.
#[derive(Debug)]
pub(super) struct Later {
    /// The links of the named processes.
    pub(super) named: Vec<Linked>,
    /// For processes that get links of their own.
    pub(super) own: Links,
    /// For the others, in all processes of the files.
    pub(super) everywhere: Links,
}

/// A link for one process, or for all.
#[derive(Debug)]
pub(super) struct Linked {
    /// Process id; 0 for all.
    pub(super) pid: u32,
    pub(super) link: OwnedFd,
}

impl Attachment {
    pub(super) fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Links, or events with a program.
    pub(super) fn links(&self) -> usize {
        match self.attach_method {
            AttachMethod::Multi => self.links.len(),
            AttachMethod::Event => self.events.len(),
        }
    }

    /// The descriptors of the probes: when all of them are closed, no program runs any more.
    pub(super) fn take_descriptors(&mut self) -> Descriptors {
        let links = std::mem::take(&mut self.links);
        let events = self.events.drain(..).map(OwnedFd::from);
        match self.attach_method {
            AttachMethod::Multi => Descriptors {
                links,
                events: events.collect(),
            },
            AttachMethod::Event => Descriptors {
                links: Vec::new(),
                events: links.into_iter().chain(events).collect(),
            },
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.take_descriptors().close();
    }
}
