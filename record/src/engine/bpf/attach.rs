//! Loading programs and attaching them to sites.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::{Arch, RawLayout};

use super::super::planter::{end_if_killed, planting};
use super::super::release::{Descriptors, Release};
use super::attach_method::AttachMethod;
use super::insn::{Assembler, Code, Helper, Map, Reg};
use super::links::Links;
use super::nonresident::Touch;
use super::program::{Common, Spec, Who, generate};
use super::sys::{self, LoadError, ProgramKind, Uprobes};
use super::wanted::{Wanted, refused};
use crate::RecordError;
use crate::plan::capture::Capture;
use crate::plan::condition::Condition;
use crate::probe::PlannedProbe;
use crate::signals::Signals;
use crate::target::Filter;

/// How long to wait for the removal of the probes of a session that ends before it began.
const PATIENCE: Duration = Duration::from_secs(5);

/// A site to attach to.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// Index of its event.
    pub(super) group: usize,
    pub(super) probe: &'a PlannedProbe,
    pub(super) site: &'a usdtrec_format::Site,
    pub(super) captures: &'a [Capture],
    pub(super) layout: &'a RawLayout,
    pub(super) arch: Arch,
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
}

/// The descriptors that keep the probes attached.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) attach_method: AttachMethod,
    /// Whether memory that is not resident is brought in.
    pub(super) touch: Touch,
    /// Why it is not brought in although this was requested.
    pub(super) untouched: Option<String>,
    /// The attach methods that were tried before this one, and why they do not work.
    pub(super) skipped: Vec<(AttachMethod, String)>,
    /// The processes that the sites are attached to; `None` for all processes of the files.
    pub(super) processes: Option<Vec<u32>>,
    /// What is attached to the processes that these start.
    pub(super) later: Option<Later>,
    links: Vec<OwnedFd>,
    events: Vec<File>,
    programs: Arc<Vec<OwnedFd>>,
}

/// What is attached to processes that recorded ones start.
#[derive(Debug)]
pub(super) struct Later {
    /// The links of the named processes.
    pub(super) named: Vec<Linked>,
    /// With the programs that count the hits of processes that have links of their own.
    pub(super) own: Links,
    /// With the programs that count the hits of the others, in all processes of the files.
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
        Release::start(self.take_descriptors()).wait(PATIENCE);
    }
}

/// Sites that were not attached to, by index, with the errors.
type Bad = Vec<(usize, RecordError)>;

/// Attaches the sites by the first method that works.
pub(super) fn attach(
    sites: &[Site<'_>],
    common: Common,
    maps: &Maps<'_>,
    wanted: &Wanted<'_>,
) -> Result<(Attachment, Bad), RecordError> {
    let mut last = refused("no way to plant is left");
    let mut untouched = None;
    let mut skipped = Vec::new();
    // Not all kernels support the check of mappings.
    let asked = common.touch;
    let ways: &[Touch] = match asked {
        Touch::Look(_) => &[asked, Touch::Never],
        Touch::Never | Touch::Always => &[asked],
    };
    for &attach_method in wanted.attach_methods {
        if attach_method == AttachMethod::Event && asked == Touch::Always && !is_since(6, 10) {
            last = refused(
                "before Linux 6.10 a program on a perf event that waits for memory holds up the uprobe events of all tracers on its CPU",
            );
            continue;
        }
        for &touch in ways {
            let common = Common {
                touch,
                ..common.clone()
            };
            if touch != Touch::Never && attach_method == AttachMethod::Event && !is_since(6, 0) {
                const REASON: &str = "programs on perf events that may sleep need Linux 6.0";
                last = refused(REASON);
                untouched = Some(REASON.to_owned());
                continue;
            }
            let signals = wanted.planting.signals;
            let planted = if attach_method == AttachMethod::Multi && maps.can_hold {
                plant_apart(sites, &common, maps, wanted)
            } else {
                Attacher::load(sites, &common, maps, (attach_method, signals))
                    .and_then(|attacher| attacher.plant(wanted, None))
            };
            match planted {
                Ok((mut attachment, bad)) => {
                    attachment.untouched = untouched.filter(|_| touch == Touch::Never);
                    attachment.skipped = skipped;
                    return Ok((attachment, bad));
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) if needs_newer(attach_method, &error) => {
                    last = refused("uprobe_multi links need Linux 6.6");
                }
                Err(error) => last = error,
            }
            untouched = Some(reason(&last));
        }
        skipped.push((attach_method, reason(&last)));
    }
    Err(last)
}

/// Whether an error means that the kernel does not have the attach method: `EINVAL` for uprobe_multi links.
fn needs_newer(attach_method: AttachMethod, error: &RecordError) -> bool {
    let invalid = match error {
        RecordError::Kernel { source, .. } | RecordError::Attach { source, .. } => {
            source.kind() == io::ErrorKind::InvalidInput
        }
        _ => false,
    };
    attach_method == AttachMethod::Multi && invalid && !is_since(6, 6)
}

/// Attaches to the named processes only, and prepares the rest.
fn plant_apart(
    sites: &[Site<'_>],
    common: &Common,
    maps: &Maps<'_>,
    wanted: &Wanted<'_>,
) -> Result<(Attachment, Bad), RecordError> {
    let load = |who| {
        let common = Common {
            who,
            ..common.clone()
        };
        Attacher::load(
            sites,
            &common,
            maps,
            (AttachMethod::Multi, wanted.planting.signals),
        )
    };
    let everywhere = load(Who::Unlinked)?;
    load(Who::Linked)?.plant(wanted, Some(everywhere))
}

/// Whether probes may be attached to the named processes only, although processes that they start are recorded, if these can be held.
pub(super) fn can_be_apart(wanted: &Wanted<'_>) -> bool {
    matches!(wanted.filter, Filter::Processes(_))
        && wanted.attach_methods.contains(&AttachMethod::Multi)
        && tells_processes()
        && wanted.filter.held_processes().is_some()
}

/// An error and one line of its cause: of the verifier's log the last line that is not a statistic.
fn reason(error: &RecordError) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    let mut lines = cause.lines().filter(|line| !line.starts_with("processed "));
    match lines.next_back() {
        Some(last) => format!("{error}: {last}"),
        None => error.to_string(),
    }
}

/// Programs loaded for sites.
struct Attacher<'a> {
    sites: &'a [Site<'a>],
    signals: &'a Signals,
    /// Index of each site's program.
    program_of: Vec<usize>,
    /// The links so far.
    linked: Vec<Linked>,
    programs: Vec<OwnedFd>,
    attachment: Attachment,
}

impl<'a> Attacher<'a> {
    /// Generates and loads the programs: one for all sites with the same code.
    fn load(
        sites: &'a [Site<'a>],
        common: &Common,
        maps: &Maps<'_>,
        (attach_method, signals): (AttachMethod, &'a Signals),
    ) -> Result<Self, RecordError> {
        let mut known: HashMap<Code, usize> = HashMap::new();
        let mut attacher = Self {
            sites,
            signals,
            program_of: Vec::new(),
            linked: Vec::new(),
            programs: Vec::new(),
            attachment: Attachment {
                attach_method,
                touch: common.touch,
                untouched: None,
                skipped: Vec::new(),
                processes: None,
                later: None,
                links: Vec::new(),
                events: Vec::new(),
                programs: Arc::default(),
            },
        };
        // Links to many sites of one program came after cookies.
        let is_of_one_site = attach_method == AttachMethod::Event && !has_cookies();
        for site in sites {
            attacher.check_signals()?;
            let spec = Spec {
                cookie: is_of_one_site.then_some(site.cookie),
                arch: site.arch,
                captures: site.captures,
                layout: site.layout,
                condition: site.condition,
            };
            let code = generate(&spec, common)
                .ok_or_else(|| refused("too many arguments for a program"))?;
            let index = match known.get(&code) {
                Some(index) => *index,
                None => {
                    let program = load(&code, maps, attach_method)
                        .map_err(|refusal| verifier(site.probe, &refusal))?;
                    attacher.programs.push(program);
                    known.insert(code, attacher.programs.len() - 1);
                    attacher.programs.len() - 1
                }
            };
            attacher.program_of.push(index);
        }
        attacher.attachment.programs = Arc::new(std::mem::take(&mut attacher.programs));
        Ok(attacher)
    }

    /// Attaches them.
    fn plant(
        mut self,
        wanted: &Wanted<'_>,
        everywhere: Option<Self>,
    ) -> Result<(Attachment, Bad), RecordError> {
        let bad = match self.attachment.attach_method {
            AttachMethod::Multi => {
                let processes = match everywhere {
                    Some(_) => wanted.filter.named_processes(),
                    None => wanted.filter.processes_alone(),
                };
                self.attachment.processes = processes.filter(|_| tells_processes());
                let bad = self.link_all()?;
                if let Some(everywhere) = everywhere {
                    self.attachment.later = Some(Later {
                        named: std::mem::take(&mut self.linked),
                        own: self.planned(&bad)?,
                        everywhere: everywhere.planned(&bad)?,
                    });
                }
                let linked = self.linked.drain(..).map(|linked| linked.link);
                self.attachment.links.extend(linked);
                bad
            }
            AttachMethod::Event => {
                wanted.planting.announce(self.sites.len());
                self.open_all(wanted.pmu)?
            }
        };
        if bad.len() < self.sites.len() {
            return Ok((self.attachment, bad));
        }
        let mut errors = bad.into_iter().map(|(_, error)| error);
        Err(errors.next().unwrap_or_else(|| refused("there is no site")))
    }

    /// Removes what is attached, if a signal has arrived.
    fn check_signals(&mut self) -> Result<(), RecordError> {
        if self.signals.has_arrived() {
            let mut descriptors = self.attachment.take_descriptors();
            let linked = self.linked.drain(..).map(|linked| linked.link);
            descriptors.links.extend(linked);
            return Err(Release::start(descriptors).interrupted());
        }
        Ok(())
    }

    /// The sites of each program and file.
    fn together(&self) -> HashMap<(usize, FileId), Vec<usize>> {
        let mut together: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, site) in self.sites.iter().enumerate() {
            let key = (self.program_of[index], site.probe.file().id());
            together.entry(key).or_default().push(index);
        }
        together
    }

    /// The links that there can be, without sites that the kernel refuses.
    fn planned(&self, bad: &Bad) -> Result<Links, RecordError> {
        let mut links = Links::new(Arc::clone(&self.attachment.programs));
        for ((program, _), mut sites) in self.together() {
            sites.retain(|site| bad.iter().all(|(bad, _)| bad != site));
            let Some(first) = sites.first().and_then(|index| self.sites.get(*index)) else {
                continue;
            };
            let uprobes = self.uprobes(&sites).map_err(|source| RecordError::Kernel {
                what: format!("{} cannot be planted", first.probe.event()),
                source,
            })?;
            links.add(program, first.probe.file(), uprobes);
        }
        Ok(links)
    }

    /// One link for the sites of one program and file.
    fn link_all(&mut self) -> Result<Bad, RecordError> {
        let mut bad = Vec::new();
        for ((program, _), sites) in self.together() {
            self.check_signals()?;
            self.link(program, &sites, &mut bad)?;
        }
        bad.sort_by_key(|(index, _)| *index);
        Ok(bad)
    }

    /// Links sites; if the kernel refuses, each half by itself, until those that it refuses are found.
    fn link(&mut self, program: usize, sites: &[usize], bad: &mut Bad) -> Result<(), RecordError> {
        let error = match self.link_once(program, sites) {
            Ok(mut links) => {
                self.linked.append(&mut links);
                return Ok(());
            }
            Err(error) => error,
        };
        end_if_killed(&error)?;
        let halves = sites.split_at(sites.len() / 2);
        match sites {
            [] => {}
            [site] => bad.push((*site, self.not_planted(*site, error))),
            _ => {
                self.link(program, halves.0, bad)?;
                self.link(program, halves.1, bad)?;
            }
        }
        Ok(())
    }

    /// One link, or one for each process that is still there.
    fn link_once(&self, program: usize, sites: &[usize]) -> io::Result<Vec<Linked>> {
        let first = sites.first().and_then(|index| self.sites.get(*index));
        let file = &first.ok_or(io::ErrorKind::NotFound)?.probe.file();
        let uprobes = self.uprobes(sites)?;
        let (program, path) = (self.program(program)?, file.kernel_path());
        let link = |pid| {
            let link = planting(|| sys::link_uprobes(program, &path, &uprobes, pid))?;
            Ok(Linked { pid, link })
        };
        let Some(processes) = &self.attachment.processes else {
            return Ok(vec![link(0)?]);
        };
        let links = processes.iter().map(|pid| link(*pid));
        // One that has ended hits no more.
        let ended = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        links
            .filter(|link| !link.as_ref().is_err_and(ended))
            .collect()
    }

    fn uprobes(&self, sites: &[usize]) -> io::Result<Uprobes> {
        let mut uprobes = Uprobes::default();
        for site in sites.iter().filter_map(|index| self.sites.get(*index)) {
            let (offset, ref_ctr) = offsets(site)?;
            uprobes.offsets.push(offset);
            uprobes.ref_ctrs.push(ref_ctr.into());
            uprobes.cookies.push(site.cookie);
        }
        Ok(uprobes)
    }

    /// One event and one link for each site.
    fn open_all(&mut self, pmu: u32) -> Result<Bad, RecordError> {
        let mut bad = Vec::new();
        for index in 0..self.sites.len() {
            self.check_signals()?;
            let opening = self.opening(index, pmu);
            match opening.and_then(|opening| planting(|| opening.open())) {
                Ok((event, link)) => {
                    self.attachment.events.push(event);
                    self.attachment.links.extend(link);
                }
                Err(error) => {
                    end_if_killed(&error)?;
                    bad.push((index, self.not_planted(index, error)));
                }
            }
        }
        Ok(bad)
    }

    /// What opening the event of a site takes.
    fn opening(&self, index: usize, pmu: u32) -> io::Result<Opening<'_>> {
        let site = &self.sites[index];
        let (offset, ref_ctr) = offsets(site)?;
        Ok(Opening {
            pmu,
            path: site.probe.file().kernel_path(),
            offset,
            ref_ctr,
            program: self.program(self.program_of[index])?,
            cookie: has_cookies().then_some(site.cookie),
        })
    }

    fn program(&self, index: usize) -> io::Result<BorrowedFd<'_>> {
        let program = self.attachment.programs.get(index);
        program
            .map(AsFd::as_fd)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn not_planted(&self, index: usize, source: io::Error) -> RecordError {
        let site = &self.sites[index];
        RecordError::Attach {
            event: site.probe.event(),
            path: site.probe.path.clone(),
            offset: site.site.offset.unwrap_or(0),
            hint: "",
            source,
        }
    }
}

/// What opening the event of a site takes: made beforehand, because the call must not allocate ([`planting`]).
struct Opening<'a> {
    /// Number of the uprobe PMU.
    pmu: u32,
    path: CString,
    /// File offset of the site.
    offset: u64,
    /// File offset of its semaphore, or 0.
    ref_ctr: u32,
    program: BorrowedFd<'a>,
    /// `None` where the kernel has none (before Linux 5.15).
    cookie: Option<u64>,
}

impl Opening<'_> {
    /// Opens the event with its program attached, and the link that attaches it; without cookies there is none.
    fn open(&self) -> io::Result<(File, Option<OwnedFd>)> {
        let event = sys::open_uprobe(&sys::UprobeEvent {
            pmu: self.pmu,
            path: &self.path,
            offset: self.offset,
            ref_ctr: self.ref_ctr,
        })?;
        let link = match self.cookie {
            Some(cookie) => Some(sys::link_perf_event(self.program, event.as_fd(), cookie)?),
            None => {
                sys::set_program(event.as_fd(), self.program)?;
                None
            }
        };
        sys::enable(&event)?;
        Ok((event, link))
    }
}

/// Whether a link for a process is one for all its threads: from Linux 6.10 on. Before, it was one for its first thread.
fn tells_processes() -> bool {
    is_since(6, 11)
}

/// Whether programs can ask which site was hit (`bpf_get_attach_cookie`, Linux 5.15).
fn has_cookies() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut asm = Assembler::default();
        asm.call(Helper::AttachCookie);
        asm.set(Reg::R0, 0);
        asm.exit();
        let Some(code) = asm.finish() else {
            return true;
        };
        let program = sys::Program {
            kind: ProgramKind::Kprobe,
            words: &code.words,
            functions: &[],
            flags: 0,
            expected_attach: 0,
            attach_kind: 0,
        };
        // 5.10 says `invalid func unknown#174`. Another reason comes again with the programs themselves.
        !matches!(sys::load(&program), Err(refusal) if refusal.log.contains("unknown"))
    })
}

/// Whether the kernel is this version or a later one.
fn is_since(major: u32, minor: u32) -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(second))) => (first, second) >= (major, minor),
        _ => false,
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

fn offsets(site: &Site<'_>) -> io::Result<(u64, u32)> {
    site.probe.offsets(site.site).map_err(io::Error::other)
}

/// The error for a program that the verifier refused, with its log.
fn verifier(probe: &PlannedProbe, refusal: &LoadError) -> RecordError {
    RecordError::Kernel {
        what: format!("the kernel does not load the program for {}", probe.event()),
        source: io::Error::new(refusal.error.kind(), refusal.to_string()),
    }
}
