//! Loading programs and attaching them to sites.

use std::collections::HashMap;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf_event_open_sys::bindings::perf_event_attr;
use usdtrec_format::{Arch, RawLayout};

use super::Wanted;
use super::insn::{Code, Map};
use super::program::{Common, Spec, generate};
use super::sys::{self, LoadError, ProgramKind, Uprobes};
use crate::RecordError;
use crate::plan::capture::Capture;
use crate::plan::condition::Condition;
use crate::select::PlannedProbe;

/// Most threads that close links.
const CLOSERS: usize = 64;

/// A way to plant sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    /// One uprobe_multi link for each program and file (Linux 6.6).
    Multi,
    /// One event of the uprobe PMU for each site, with a link to the program (Linux 5.15).
    Event,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multi => "uprobe_multi",
            Self::Event => "uprobe PMU",
        })
    }
}

/// A site to be planted.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// Index of its event.
    pub(super) group: usize,
    pub(super) probe: &'a PlannedProbe,
    pub(super) site: &'a usdtrec_format::Site,
    pub(super) captures: &'a [Capture],
    pub(super) layout: &'a RawLayout,
    pub(super) arch: Arch,
    /// Which hits count; `None` for all.
    pub(super) condition: Option<&'a Condition>,
    /// Bytes from the nop to the breakpoint.
    pub(super) behind: u8,
    /// What the program gets at a hit.
    pub(super) cookie: u64,
}

/// The maps that programs use.
pub(super) struct Maps<'a> {
    pub(super) ring: BorrowedFd<'a>,
    pub(super) control: BorrowedFd<'a>,
    pub(super) tracked: BorrowedFd<'a>,
    pub(super) stopped: Option<BorrowedFd<'a>>,
}

/// What holds the probes planted.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) rung: Rung,
    pub(super) sleepable: bool,
    // Links go before the events that they are on.
    links: Vec<OwnedFd>,
    events: Vec<File>,
    programs: Vec<OwnedFd>,
}

impl Attachment {
    pub(super) fn programs(&self) -> usize {
        self.programs.len()
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Takes all probes away. When it returns, no program runs any more.
    pub(super) fn detach(&mut self) {
        close(std::mem::take(&mut self.links));
        self.events.clear();
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Closes links from several threads: the kernel waits at each for programs that run to end, and can wait for many at once.
fn close(mut links: Vec<OwnedFd>) {
    let each = links.len().div_ceil(CLOSERS).max(1);
    std::thread::scope(|scope| {
        while links.len() > each {
            let some = links.split_off(links.len() - each);
            scope.spawn(move || drop(some));
        }
        drop(links);
    });
}

/// Sites that were not planted, by index, and why.
type Bad = Vec<(usize, RecordError)>;

/// Plants the sites in the first way that works.
pub(super) fn attach(
    sites: &[Site<'_>],
    common: Common,
    maps: &Maps<'_>,
    wanted: &Wanted<'_>,
) -> Result<(Attachment, Bad), RecordError> {
    let mut last = super::refused("no way to plant is left");
    for &rung in wanted.rungs {
        for sleepable in [true, false] {
            let common = Common {
                sleepable,
                ..common.clone()
            };
            match Attacher::load(sites, &common, maps, rung)
                .and_then(|attacher| attacher.plant(wanted))
            {
                Ok(done) => return Ok(done),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// Programs loaded for sites.
struct Attacher<'a> {
    sites: &'a [Site<'a>],
    /// Index of each site's program.
    program_of: Vec<usize>,
    attachment: Attachment,
}

impl<'a> Attacher<'a> {
    /// Generates and loads the programs: one for all sites with the same code.
    fn load(
        sites: &'a [Site<'a>],
        common: &Common,
        maps: &Maps<'_>,
        rung: Rung,
    ) -> Result<Self, RecordError> {
        let mut known: HashMap<Code, usize> = HashMap::new();
        let mut attacher = Self {
            sites,
            program_of: Vec::new(),
            attachment: Attachment {
                rung,
                sleepable: common.sleepable,
                links: Vec::new(),
                events: Vec::new(),
                programs: Vec::new(),
            },
        };
        for site in sites {
            let spec = Spec {
                arch: site.arch,
                captures: site.captures,
                layout: site.layout,
                condition: site.condition,
                behind: site.behind,
            };
            let code = generate(&spec, common)
                .ok_or_else(|| super::refused("too many arguments for a program"))?;
            let index = match known.get(&code) {
                Some(index) => *index,
                None => {
                    let program = load(&code, maps, common.sleepable, rung)
                        .map_err(|refusal| verifier(site.probe, &refusal))?;
                    attacher.attachment.programs.push(program);
                    known.insert(code, attacher.attachment.programs.len() - 1);
                    attacher.attachment.programs.len() - 1
                }
            };
            attacher.program_of.push(index);
        }
        Ok(attacher)
    }

    /// Attaches them.
    fn plant(mut self, wanted: &Wanted<'_>) -> Result<(Attachment, Bad), RecordError> {
        let bad = match self.attachment.rung {
            Rung::Multi => self.link_all(),
            Rung::Event => self.open_all(wanted.pmu),
        };
        if bad.len() < self.sites.len() {
            return Ok((self.attachment, bad));
        }
        let mut errors = bad.into_iter().map(|(_, error)| error);
        Err(errors
            .next()
            .unwrap_or_else(|| super::refused("there is no site")))
    }

    /// One link for the sites of one program and file.
    fn link_all(&mut self) -> Bad {
        let mut together: HashMap<(usize, &Path), Vec<usize>> = HashMap::new();
        for (index, site) in self.sites.iter().enumerate() {
            let key = (self.program_of[index], site.probe.path.as_path());
            together.entry(key).or_default().push(index);
        }
        let mut bad = Vec::new();
        for ((program, path), sites) in together {
            self.link(program, path, &sites, &mut bad);
        }
        bad.sort_by_key(|(index, _)| *index);
        bad
    }

    /// Links sites; if the kernel refuses, each half by itself, until those that it refuses are found.
    fn link(&mut self, program: usize, path: &Path, sites: &[usize], bad: &mut Bad) {
        let error = match self.link_once(program, path, sites) {
            Ok(link) => {
                self.attachment.links.push(link);
                return;
            }
            Err(error) => error,
        };
        let halves = sites.split_at(sites.len() / 2);
        match sites {
            [] => {}
            [site] => bad.push((*site, self.not_planted(*site, error))),
            _ => {
                self.link(program, path, halves.0, bad);
                self.link(program, path, halves.1, bad);
            }
        }
    }

    fn link_once(&self, program: usize, path: &Path, sites: &[usize]) -> io::Result<OwnedFd> {
        let mut uprobes = Uprobes::default();
        for site in sites.iter().filter_map(|index| self.sites.get(*index)) {
            let (offset, ref_ctr) = offsets(site)?;
            uprobes.offsets.push(offset);
            uprobes.ref_ctrs.push(ref_ctr.into());
            uprobes.cookies.push(site.cookie);
        }
        let path = CString::new(path.as_os_str().as_bytes())?;
        sys::link_uprobes(self.program(program)?, &path, &uprobes)
    }

    /// One event and one link for each site.
    fn open_all(&mut self, pmu: u32) -> Bad {
        let mut bad = Vec::new();
        for index in 0..self.sites.len() {
            match self.open(index, pmu) {
                Ok((event, link)) => {
                    self.attachment.events.push(event);
                    self.attachment.links.push(link);
                }
                Err(error) => bad.push((index, self.not_planted(index, error))),
            }
        }
        bad
    }

    fn open(&self, index: usize, pmu: u32) -> io::Result<(File, OwnedFd)> {
        let site = &self.sites[index];
        let (offset, ref_ctr) = offsets(site)?;
        let path = CString::new(site.probe.path.as_os_str().as_bytes())?;
        let mut attr = perf_event_attr {
            type_: pmu,
            size: size_of::<perf_event_attr>() as u32,
            config: u64::from(ref_ctr) << 32,
            ..Default::default()
        };
        attr.__bindgen_anon_1.sample_period = 1;
        attr.set_disabled(1);
        let event = sys::open_event(&mut attr, &path, offset)?;
        let program = self.program(self.program_of[index])?;
        let link = sys::link_perf_event(program, event.as_fd(), site.cookie)?;
        sys::enable(&event)?;
        Ok((event, link))
    }

    fn program(&self, index: usize) -> io::Result<BorrowedFd<'_>> {
        let program = self.attachment.programs.get(index);
        program
            .map(AsFd::as_fd)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn not_planted(&self, index: usize, source: io::Error) -> RecordError {
        let site = &self.sites[index];
        RecordError::Kernel {
            what: format!(
                "the kernel does not plant {} at {} offset {:#x}",
                site.probe.event(),
                site.probe.path.display(),
                site.site.offset.unwrap_or(0)
            ),
            source,
        }
    }
}

fn load(code: &Code, maps: &Maps<'_>, sleepable: bool, rung: Rung) -> Result<OwnedFd, LoadError> {
    let words = code.with_maps(|map| {
        let map = match map {
            Map::Ring => maps.ring,
            Map::Control => maps.control,
            Map::Tracked => maps.tracked,
            Map::Stopped => maps.stopped.unwrap_or(maps.tracked),
        };
        map.as_raw_fd()
    });
    let flags = if sleepable { sys::SLEEPABLE } else { 0 };
    let attach = match rung {
        Rung::Multi => sys::UPROBE_MULTI,
        Rung::Event => 0,
    };
    sys::load(ProgramKind::Kprobe, &words, flags, attach)
}

fn offsets(site: &Site<'_>) -> io::Result<(u64, u32)> {
    let (offset, ref_ctr) = site.probe.offsets(site.site).map_err(io::Error::other)?;
    Ok((offset + u64::from(site.behind), ref_ctr))
}

/// A refusal of the verifier, with what it said.
fn verifier(probe: &PlannedProbe, refusal: &LoadError) -> RecordError {
    RecordError::Kernel {
        what: format!("the kernel does not load the program for {}", probe.event()),
        source: io::Error::new(refusal.error.kind(), refusal.to_string()),
    }
}
