//! Links to named processes, or to all processes of the files, of which units are detached for a time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::links::{Links, Planted, UnitLink};
use crate::engine::events::refusal::has_ended;

/// The links, and what creates them again. Whoever ends the recording takes them even if another thread does not answer.
#[derive(Debug)]
pub(in crate::engine::bpf) struct UnitLinks {
    planned: Links,
    /// `None` for all processes of the files.
    processes: Option<Vec<u32>>,
    open: Mutex<OpenLinks>,
}

#[derive(Debug)]
struct OpenLinks {
    links: Vec<UnitLink>,
    has_ended: bool,
}

impl UnitLinks {
    /// `links` are open.
    pub(in crate::engine::bpf) fn new(
        planned: Links,
        processes: Option<Vec<u32>>,
        links: Vec<UnitLink>,
    ) -> Self {
        Self {
            planned,
            processes,
            open: Mutex::new(OpenLinks {
                links,
                has_ended: false,
            }),
        }
    }

    /// Number of open links.
    pub(in crate::engine::bpf) fn len(&self) -> usize {
        self.open().links.len()
    }

    /// Takes the links of a unit.
    pub(in crate::engine::bpf) fn take(&self, unit: usize) -> Vec<OwnedFd> {
        let mut open = self.open();
        let of_unit = open.links.extract_if(.., |link| link.unit == Some(unit));
        of_unit.map(|link| link.link).collect()
    }

    /// Creates the links of a unit. If the kernel refuses one, or the recording has ended meanwhile, returns those that were created, which are to be
    /// closed, and why.
    pub(in crate::engine::bpf) fn attach(&self, unit: usize) -> Result<(), NotAttached> {
        let all = [0];
        let processes = self.processes.as_deref().unwrap_or(&all);
        let mut links = Vec::new();
        let mut refusal = None;
        for &pid in processes {
            let Planted {
                links: planted,
                error,
            } = self.planned.plant_unit_in(unit, pid);
            links.extend(planted);
            // One that has ended hits no more.
            refusal = error.filter(|error| !has_ended(error));
            if refusal.is_some() {
                break;
            }
        }
        let mut open = self.open();
        if open.has_ended || refusal.is_some() {
            return Err(NotAttached {
                created: links.into_iter().map(|link| link.link).collect(),
                error: refusal.unwrap_or_else(|| io::ErrorKind::Interrupted.into()),
            });
        }
        open.links.extend(links);
        Ok(())
    }

    /// Takes all links. None is added any more.
    pub(in crate::engine::bpf) fn end(&self) -> Vec<OwnedFd> {
        let mut open = self.open();
        open.has_ended = true;
        open.links.drain(..).map(|link| link.link).collect()
    }

    fn open(&self) -> MutexGuard<'_, OpenLinks> {
        // Each change is complete before the lock is released.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a unit could not be attached.
#[derive(Debug)]
pub(in crate::engine::bpf) struct NotAttached {
    /// Links that were created, to be closed.
    pub(in crate::engine::bpf) created: Vec<OwnedFd>,
    pub(in crate::engine::bpf) error: io::Error,
}
