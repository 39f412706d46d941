//! Links to named processes, or to all processes of the files, of which those of units or files are detached for a time.
//!
//! A link is there while its unit is not paused (a budget) and its file is not released (nobody executes it).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_kernel::separate_process;

use super::super::nonresident::Touch;
use super::links::{Links, Planted, UnitLink};
use crate::engine::events::event::has_ended;
use crate::engine::options::AttachMethod;
use crate::engine::outcome::{NotFaultedIn, SkippedMethod};
use crate::engine::release::Descriptors;

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
    absent: Absent,
    has_ended: bool,
}

/// What has no links now.
#[derive(Clone, Debug, Default)]
struct Absent {
    units: BTreeSet<usize>,
    files: Vec<Arc<ObjectFile>>,
}

impl Absent {
    fn has_unit(&self, unit: Option<usize>) -> bool {
        unit.is_some_and(|unit| self.units.contains(&unit))
    }

    fn has_file(&self, file: &Arc<ObjectFile>) -> bool {
        self.files.iter().any(|absent| Arc::ptr_eq(absent, file))
    }

    fn remove_file(&mut self, file: &Arc<ObjectFile>) {
        self.files.retain(|absent| !Arc::ptr_eq(absent, file));
    }
}

impl UnitLinks {
    /// `links` are open.
    pub(super) fn new(planned: Links, processes: Option<Vec<u32>>, links: Vec<UnitLink>) -> Self {
        Self {
            planned,
            processes,
            open: Mutex::new(OpenLinks {
                links,
                absent: Absent::default(),
                has_ended: false,
            }),
        }
    }

    /// Number of open links.
    pub(super) fn len(&self) -> usize {
        self.open().links.len()
    }

    /// Whether they are in all processes of the files.
    pub(in crate::engine::bpf) const fn is_everywhere(&self) -> bool {
        self.processes.is_none()
    }

    /// Takes the links of a unit.
    pub(in crate::engine::bpf) fn take(&self, unit: usize) -> Vec<OwnedFd> {
        let mut open = self.open();
        open.absent.units.insert(unit);
        open.take(|link| link.unit == Some(unit))
    }

    /// Takes the links of a file.
    pub(in crate::engine::bpf) fn take_file(&self, file: &Arc<ObjectFile>) -> Vec<OwnedFd> {
        let mut open = self.open();
        if !open.absent.has_file(file) {
            open.absent.files.push(Arc::clone(file));
        }
        open.take(|link| link.is_of(file))
    }

    /// Creates the links of a unit, but for files that are released. If the kernel refuses one, or the recording has ended meanwhile, returns those that
    /// were created, which are to be closed, and why.
    pub(in crate::engine::bpf) fn attach(&self, unit: usize) -> Result<(), NotAttached> {
        let absent = self.change(|absent| {
            absent.units.remove(&unit);
        });
        let attached = self.create(|of, file| of == Some(unit) && !absent.has_file(file));
        if attached.is_err() {
            self.change(|absent| {
                absent.units.insert(unit);
            });
        }
        attached
    }

    /// As [`attach`](Self::attach), those of a file, but for units that are paused.
    pub(in crate::engine::bpf) fn attach_file(
        &self,
        file: &Arc<ObjectFile>,
    ) -> Result<(), NotAttached> {
        let absent = self.change(|absent| absent.remove_file(file));
        let attached = self.create(|unit, of| Arc::ptr_eq(of, file) && !absent.has_unit(unit));
        if attached.is_err() {
            self.change(|absent| absent.files.push(Arc::clone(file)));
        }
        attached
    }

    /// Changes what has no links. Two threads that attach create each link once: each sees what is absent beside its own change.
    fn change(&self, change: impl FnOnce(&mut Absent)) -> Absent {
        let mut open = self.open();
        change(&mut open.absent);
        open.absent.clone()
    }

    fn create(
        &self,
        is_chosen: impl Fn(Option<usize>, &Arc<ObjectFile>) -> bool,
    ) -> Result<(), NotAttached> {
        if self.open().has_ended {
            return Err(NotAttached {
                created: Vec::new(),
                error: io::ErrorKind::Interrupted.into(),
            });
        }
        let all = [0];
        let processes = self.processes.as_deref().unwrap_or(&all);
        let mut links = Vec::new();
        let mut refusal = None;
        for &pid in processes {
            let Planted {
                links: planted,
                error,
            } = self.planned.plant_some_in(pid, &is_chosen);
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
        // Another thread may have detached its unit or its file meanwhile.
        let absent = &open.absent;
        let is_absent = |link: &mut UnitLink| {
            absent.has_unit(link.unit) || absent.files.iter().any(|file| link.is_of(file))
        };
        let unwanted = links.extract_if(.., is_absent).map(|link| link.link);
        let unwanted: Vec<OwnedFd> = unwanted.collect();
        open.links.extend(links);
        drop(open);
        if !unwanted.is_empty() {
            separate_process::close(unwanted);
        }
        Ok(())
    }

    /// Takes all links. None is added any more.
    pub(super) fn end(&self) -> Vec<OwnedFd> {
        let mut open = self.open();
        open.has_ended = true;
        open.take(|_| true)
    }

    fn open(&self) -> MutexGuard<'_, OpenLinks> {
        // Each change is complete before the lock is released.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenLinks {
    fn take(&mut self, is_taken: impl Fn(&UnitLink) -> bool) -> Vec<OwnedFd> {
        let taken = self.links.extract_if(.., |link| is_taken(link));
        taken.map(|link| link.link).collect()
    }
}

/// Why links could not be created.
#[derive(Debug)]
pub(in crate::engine::bpf) struct NotAttached {
    /// Links that were created, to be closed.
    pub created: Vec<OwnedFd>,
    pub error: io::Error,
}

/// The descriptors that keep the probes attached.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Attachment {
    pub attach_method: AttachMethod,
    /// Whether memory that is not resident is faulted in.
    pub touch: Touch,
    /// Why it is not brought in although this was requested.
    pub not_faulted_in: Option<NotFaultedIn>,
    /// The attach methods that were tried before this one, and why they do not work.
    pub skipped: Vec<SkippedMethod>,
    /// The processes that the sites are attached to; `None` for all processes of the files.
    pub processes: Option<Vec<u32>>,
    /// What is attached to the processes that these start.
    pub later: Option<Later>,
    pub links: Vec<OwnedFd>,
    /// The links, if those of units or of files are detached for a time.
    pub units: Option<Arc<UnitLinks>>,
    pub events: Vec<File>,
    pub programs: Arc<Vec<OwnedFd>>,
}

/// What is attached to processes that recorded ones start.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Later {
    /// The named processes.
    pub processes: Vec<u32>,
    /// Their links.
    pub named: Vec<Linked>,
    /// For processes that get links of their own.
    pub own: Links,
    /// For the others, in all processes of the files.
    pub everywhere: Links,
}

/// A link for one process, or for all.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Linked {
    /// Process id; 0 for all.
    pub pid: u32,
    pub link: UnitLink,
}

impl Attachment {
    /// Without links.
    pub(super) fn empty(attach_method: AttachMethod, touch: Touch) -> Self {
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

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use usdtrec_kernel::bpf::sys::Uprobes;

    use super::super::links::Link;
    use super::*;
    use crate::select::program::Program;

    /// A breakpoint that is inserted and removed again costs a forking process time, too.
    #[test]
    fn nothing_is_attached_after_the_end() {
        let path = std::env::current_exe().unwrap();
        let object = Arc::new(ObjectFile::open(&path).unwrap());
        let mut planned = Links::default();
        planned.add(Link {
            programs: Arc::default(),
            program: 0,
            file: Arc::new(Program::new(Arc::clone(&object))),
            path: CString::default(),
            uprobes: Uprobes::default(),
            unit: None,
        });
        let links = UnitLinks::new(planned, None, Vec::new());
        let refused = links.attach_file(&object).unwrap_err();
        assert_eq!(refused.error.kind(), io::ErrorKind::NotFound);
        assert!(links.end().is_empty());
        let refused = links.attach_file(&object).unwrap_err();
        assert_eq!(refused.error.kind(), io::ErrorKind::Interrupted);
    }
}
