//! Links of sites to the loaded programs, for one process or for all.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_kernel::bpf::sys::{self, Uprobes};
use usdtrec_kernel::separate_process::planting;

use crate::select::program::Program;

/// One link for each program, file and unit.
#[derive(Debug, Default)]
pub(in crate::engine::bpf) struct Links {
    links: Vec<Link>,
    /// The units that are not attached now.
    paused: BTreeSet<usize>,
}

/// A link of a program and the sites of one file.
#[derive(Debug)]
pub(super) struct Link {
    pub programs: Arc<Vec<OwnedFd>>,
    /// Index of its program.
    pub program: usize,
    /// Keeps `path` valid.
    pub file: Arc<Program>,
    pub path: CString,
    pub uprobes: Uprobes,
    /// The unit with which its sites are detached for a time.
    pub unit: Option<usize>,
}

/// A link that was created.
#[derive(Debug)]
pub(in crate::engine::bpf) struct UnitLink {
    pub unit: Option<usize>,
    /// `None` for one that is only closed.
    pub file: Option<Arc<ObjectFile>>,
    pub link: OwnedFd,
}

impl UnitLink {
    /// Whether it is of a file.
    pub(super) fn is_of(&self, file: &Arc<ObjectFile>) -> bool {
        let own = self.file.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, file))
    }
}

/// The links that were created.
#[derive(Debug, Default)]
pub(in crate::engine::bpf) struct Planted {
    pub links: Vec<UnitLink>,
    /// The last refusal.
    pub error: Option<io::Error>,
}

impl Links {
    /// Adds a link.
    pub(super) fn add(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Adds others.
    pub(in crate::engine::bpf) fn append(&mut self, others: Self) {
        self.links.extend(others.links);
    }

    /// Number of links.
    pub(in crate::engine::bpf) fn len(&self) -> usize {
        self.links.len()
    }

    /// Sets whether a unit is not attached now.
    pub(in crate::engine::bpf) fn set_paused(&mut self, unit: usize, is_paused: bool) {
        if is_paused {
            self.paused.insert(unit);
        } else {
            self.paused.remove(&unit);
        }
    }

    /// Whether a link is created now.
    fn is_wanted(&self, link: &Link) -> bool {
        link.unit.is_none_or(|unit| !self.paused.contains(&unit))
    }

    /// Attaches to a process: creates all links but those of paused units, or those before the first one that the kernel refuses.
    pub(in crate::engine::bpf) fn plant_in(&self, pid: u32) -> Planted {
        self.plant(pid, |link| self.is_wanted(link))
    }

    /// Attaches a unit to a process, or, with 0, to all.
    pub(in crate::engine::bpf) fn plant_unit_in(&self, unit: usize, pid: u32) -> Planted {
        self.plant(pid, |link| link.unit == Some(unit))
    }

    /// Attaches the links of chosen units and files to a process, or, with 0, to all. The choice allocates nothing.
    pub(super) fn plant_some_in(
        &self,
        pid: u32,
        is_chosen: impl Fn(Option<usize>, &Arc<ObjectFile>) -> bool,
    ) -> Planted {
        self.plant(pid, |link| is_chosen(link.unit, link.file.file()))
    }

    fn plant(&self, pid: u32, is_wanted: impl Fn(&Link) -> bool) -> Planted {
        let mut links = Vec::with_capacity(self.links.len());
        let mut wanted = self.links.iter().filter(|link| is_wanted(link));
        if let Err(error) = wanted.try_for_each(Link::check_pages) {
            return Planted {
                links,
                error: Some(error),
            };
        }
        // Nothing is allocated here: the process that does it may be killed. Then it is done once more, to no effect.
        let planted = planting(|| {
            links.clear();
            for link in self.links.iter().filter(|link| is_wanted(link)) {
                links.push(link.create(pid)?);
            }
            Ok(())
        });
        Planted {
            links,
            error: planted.err(),
        }
    }

    /// Attaches to all processes, but for paused units. Links that the kernel refuses are left out.
    pub(in crate::engine::bpf) fn plant_everywhere(&self) -> Planted {
        let mut planted = Planted::default();
        for link in self.links.iter().filter(|link| self.is_wanted(link)) {
            match link
                .check_pages()
                .and_then(|()| planting(|| link.create(0)))
            {
                Ok(link) => planted.links.push(link),
                Err(error) => planted.error = Some(error),
            }
        }
        planted
    }
}

impl Link {
    fn check_pages(&self) -> io::Result<()> {
        self.file.check_pages(self.uprobes.pages())
    }

    /// Creates it, for a process or, with 0, for all.
    fn create(&self, pid: u32) -> io::Result<UnitLink> {
        let program = self.programs.get(self.program).map(AsFd::as_fd);
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        let link = sys::link_uprobes(program, &self.path, &self.uprobes, pid)?;
        Ok(UnitLink {
            unit: self.unit,
            file: Some(Arc::clone(self.file.file())),
            link,
        })
    }
}

/// How the event of a site is opened: made beforehand, because the call must not allocate ([`planting`](usdtrec_kernel::separate_process::planting)).
pub(super) struct SiteEvent<'a> {
    /// Number of the uprobe PMU.
    pub pmu: u32,
    pub path: CString,
    /// File offset of the site.
    pub offset: u64,
    /// Its semaphore ([`SiteOffsets::pmu_config`](crate::select::probe::SiteOffsets::pmu_config)).
    pub config: u64,
    /// A CPU that is on line.
    pub cpu: u32,
    pub program: BorrowedFd<'a>,
    /// `None` where the kernel has none (before Linux 5.15).
    pub cookie: Option<u64>,
}

/// An open event.
pub(super) struct OpenSiteEvent {
    pub event: File,
    /// The link that attaches the program; `None` without cookies, where the event itself has the program.
    pub link: Option<OwnedFd>,
}

impl SiteEvent<'_> {
    /// Opens the event with its program attached.
    pub(super) fn open(&self) -> io::Result<OpenSiteEvent> {
        let event = sys::open_uprobe(&sys::UprobeEvent {
            pmu: self.pmu,
            path: &self.path,
            offset: self.offset,
            config: self.config,
            of: sys::HitsOf::Cpu(self.cpu),
        })?;
        let link = match self.cookie {
            Some(cookie) => Some(sys::link_perf_event(self.program, event.as_fd(), cookie)?),
            None => {
                sys::set_program(event.as_fd(), self.program)?;
                None
            }
        };
        sys::enable(&event)?;
        Ok(OpenSiteEvent { event, link })
    }
}
