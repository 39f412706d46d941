//! The descriptors that keep probes attached.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::nonresident::Touch;
use super::attach_method::AttachMethod;
use super::links::{Links, UnitLink};
use super::skipped_method::{NotFaultedIn, SkippedMethod};
use super::unit_links::UnitLinks;
use crate::engine::release::Descriptors;

/// The descriptors that keep the probes attached.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Attachment {
    pub(in crate::engine::bpf) attach_method: AttachMethod,
    /// Whether memory that is not resident is brought in.
    pub(in crate::engine::bpf) touch: Touch,
    /// Why it is not brought in although this was requested.
    pub(in crate::engine::bpf) not_faulted_in: Option<NotFaultedIn>,
    /// The attach methods that were tried before this one, and why they do not work.
    pub(in crate::engine::bpf) skipped: Vec<SkippedMethod>,
    /// The processes that the sites are attached to; `None` for all processes of the files.
    pub(in crate::engine::bpf) processes: Option<Vec<u32>>,
    /// What is attached to the processes that these start.
    pub(in crate::engine::bpf) later: Option<Later>,
    pub(in crate::engine::bpf) links: Vec<OwnedFd>,
    /// The links, if those of units or of files are detached for a time.
    pub(in crate::engine::bpf) units: Option<Arc<UnitLinks>>,
    pub(in crate::engine::bpf) events: Vec<File>,
    pub(in crate::engine::bpf) programs: Arc<Vec<OwnedFd>>,
}

/// What is attached to processes that recorded ones start.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Later {
    /// The named processes.
    pub(in crate::engine::bpf) processes: Vec<u32>,
    /// Their links.
    pub(in crate::engine::bpf) named: Vec<Linked>,
    /// For processes that get links of their own.
    pub(in crate::engine::bpf) own: Links,
    /// For the others, in all processes of the files.
    pub(in crate::engine::bpf) everywhere: Links,
}

/// A link for one process, or for all.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Linked {
    /// Process id; 0 for all.
    pub(in crate::engine::bpf) pid: u32,
    pub(in crate::engine::bpf) link: UnitLink,
}

impl Attachment {
    /// Without links.
    pub(in crate::engine::bpf) fn empty(attach_method: AttachMethod, touch: Touch) -> Self {
        Self {
            attach_method,
            touch,
            not_faulted_in: None,
            skipped: Vec::new(),
            processes: None,
            later: None,
            links: Vec::new(),
            units: None,
            events: Vec::new(),
            programs: Arc::default(),
        }
    }

    pub(in crate::engine::bpf) fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Links, or events with a program.
    pub(in crate::engine::bpf) fn links(&self) -> usize {
        match self.attach_method {
            AttachMethod::Multi => {
                self.links.len() + self.units.as_ref().map_or(0, |units| units.len())
            }
            AttachMethod::Event => self.events.len(),
        }
    }

    /// The descriptors of the probes: when all of them are closed, no program runs any more.
    pub(in crate::engine::bpf) fn take_descriptors(&mut self) -> Descriptors {
        let mut links = std::mem::take(&mut self.links);
        if let Some(units) = &self.units {
            links.extend(units.end());
        }
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
