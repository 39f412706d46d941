//! The programs of sites, loaded: one for all sites with the same code.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::{Arch, RawLayout};

use super::super::release::{Descriptors, Release};
use super::attach_method::AttachMethod;
use super::insn::{Code, Map};
use super::kernel::has_cookies;
use super::program::{Common, Spec, generate};
use super::sys::{self, LoadError, ProgramKind};
use crate::error::RecordError;
use crate::kernel_error::{BpfRefusal, KernelOperation};
use crate::plan::ReturnAddress;
use crate::plan::call_graph::CallGraph;
use crate::plan::capture::Capture;
use crate::plan::condition::Condition;
use crate::probe::PlannedProbe;
use crate::signals::Signals;

/// A site to attach to.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) probe: &'a PlannedProbe,
    pub(super) site: &'a usdtrec_format::Site,
    pub(super) captures: &'a [Capture],
    pub(super) layout: &'a RawLayout,
    pub(super) arch: Arch,
    /// How the callers are found; `None` if they are not.
    pub(super) graph: Option<CallGraph>,
    /// Where the return address is, if the callers are found by frame pointers and the function has no frame.
    pub(super) return_address: Option<ReturnAddress>,
    /// Filter of the hits; `None` for all hits.
    pub(super) condition: Option<&'a Condition>,
    /// The cookie that the program reads at a hit.
    pub(super) cookie: u64,
}

/// The maps that programs use.
pub(super) struct Maps<'a> {
    pub(super) rings: BorrowedFd<'a>,
    pub(super) control: BorrowedFd<'a>,
    pub(super) tracked: BorrowedFd<'a>,
    /// Whether processes that recorded ones start can be held until probes are attached to them.
    pub(super) can_hold: bool,
    pub(super) stopped: Option<BorrowedFd<'a>>,
    pub(super) spared: Option<BorrowedFd<'a>>,
    pub(super) stack_rates: Option<BorrowedFd<'a>>,
}

/// The loaded programs of sites.
#[derive(Debug)]
pub(super) struct SitePrograms {
    /// Index of each site's program.
    program_of: Vec<usize>,
    /// The programs.
    pub(super) programs: Arc<Vec<OwnedFd>>,
}

impl SitePrograms {
    /// Generates and loads the programs.
    pub(super) fn load(
        sites: &[Site<'_>],
        common: &Common,
        maps: &Maps<'_>,
        attach_method: AttachMethod,
        signals: &Signals,
    ) -> Result<Self, RecordError> {
        let mut known: HashMap<Code, usize> = HashMap::new();
        let (mut programs, mut program_of) = (Vec::new(), Vec::new());
        // Links to many sites of one program came after cookies.
        let is_of_one_site = attach_method == AttachMethod::Event && !has_cookies();
        for site in sites {
            if signals.has_arrived() {
                return Err(Release::start(Descriptors::default()).interrupted());
            }
            let spec = Spec {
                cookie: is_of_one_site.then_some(site.cookie),
                arch: site.arch,
                graph: site.graph,
                return_address: site.return_address,
                captures: site.captures,
                layout: site.layout,
                condition: site.condition,
            };
            let code =
                generate(&spec, common).ok_or(RecordError::NoBpf(BpfRefusal::TooManyArguments))?;
            let index = match known.get(&code) {
                Some(index) => *index,
                None => {
                    let program = load(&code, maps, attach_method)
                        .map_err(|refusal| verifier(site.probe, &refusal))?;
                    programs.push(program);
                    known.insert(code, programs.len() - 1);
                    programs.len() - 1
                }
            };
            program_of.push(index);
        }
        Ok(Self {
            program_of,
            programs: Arc::new(programs),
        })
    }

    /// A program, by its index.
    pub(super) fn get(&self, index: usize) -> io::Result<BorrowedFd<'_>> {
        let program = self.programs.get(index);
        program
            .map(AsFd::as_fd)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// The program of a site, by the site's index.
    pub(super) fn of_site(&self, site: usize) -> io::Result<BorrowedFd<'_>> {
        let index = self.program_of.get(site);
        self.get(*index.ok_or(io::ErrorKind::NotFound)?)
    }

    /// The sites of each program and file, by their indexes.
    pub(super) fn together(&self, sites: &[Site<'_>]) -> HashMap<(usize, FileId), Vec<usize>> {
        let mut together: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, (site, program)) in sites.iter().zip(&self.program_of).enumerate() {
            let key = (*program, site.probe.file().id());
            together.entry(key).or_default().push(index);
        }
        together
    }
}

fn load(code: &Code, maps: &Maps<'_>, attach_method: AttachMethod) -> Result<OwnedFd, LoadError> {
    let words = code.with_maps(|map| {
        let map = match map {
            Map::Rings => maps.rings,
            Map::Control => maps.control,
            Map::Tracked => maps.tracked,
            Map::Stopped => maps.stopped.unwrap_or(maps.tracked),
            Map::Spared => maps.spared.unwrap_or(maps.tracked),
            Map::StackRates => maps.stack_rates.unwrap_or(maps.tracked),
            // Not in programs of sites.
            Map::Held | Map::Calls => maps.tracked,
        };
        map.as_raw_fd()
    });
    let flags = if code.sleeps { sys::SLEEPABLE } else { 0 };
    let attach = match attach_method {
        AttachMethod::Multi => sys::UPROBE_MULTI,
        AttachMethod::Event => 0,
    };
    sys::load(&sys::Program {
        kind: ProgramKind::Kprobe,
        words: &words,
        functions: &code.functions,
        flags,
        expected_attach: attach,
        attach_kind: 0,
    })
}

/// The error for a program that the verifier refused, with its log.
fn verifier(probe: &PlannedProbe, refusal: &LoadError) -> RecordError {
    RecordError::Kernel {
        operation: KernelOperation::Program(probe.event()),
        source: io::Error::new(refusal.error.kind(), refusal.to_string()),
    }
}
