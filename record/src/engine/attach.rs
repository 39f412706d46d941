//! What is open in the kernel: the events of process records; and the probes, attached with programs (the bpf engine) or with one perf
//! event for each site, traced thread and CPU (the perf engine).

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use usdtrec_format::perf::{EventAttr, TracepointFormat};

use super::Engine;
use super::bpf::{self, AttachMethod, Bpf, NonResident};
use super::event::{Count, Event, KernelAttr, Mode, Place};
use super::fetch::Fetched;
use super::group::Group;
use super::planter::planting;
use super::processes::Processes;
use super::refusal::refusal;
use super::release::{Descriptors, Release};
use super::rings::Rings;
use super::samples;
use super::watch::Watch;
use crate::RecordError;
use crate::error::TargetError;
use crate::filter;
use crate::plan::layout::Strings;
use crate::planting::Planting;
use crate::probe::PlannedProbe;
use crate::target::Filter;
use crate::usage_error::UsageError;

/// Number of the uprobe PMU (`/sys/bus/event_source/devices/uprobe/type`, Linux 4.17).
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Default size of each ring of the programs, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const DEFAULT_RING: usize = 8 << 20;
const LEAST_DEFAULT_RING: usize = 1 << 20;
const DEFAULT_RINGS: usize = 64 << 20;
/// Maximum size of all rings of the programs, bytes.
const MAX_RINGS: usize = 1 << 30;

/// How long to wait for the removal of the probes of a session that ends before it began.
pub(super) const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The events of one planned probe.
#[derive(Debug)]
pub(crate) struct Planted {
    /// Its perf events; empty with programs.
    pub(super) events: Vec<Event>,
    /// The kernel's event of each site; empty with programs.
    pub(super) places: Vec<Place>,
    /// The sample ids of each site, in the order of the plan's sites.
    pub(crate) site_ids: Vec<Vec<u64>>,
    /// The attr that they share.
    pub(crate) attr: EventAttr,
}

/// The attach method.
#[derive(Debug)]
pub(super) enum Way {
    /// The uprobe PMU: nothing outlives the descriptors, and nothing can be inherited.
    Pmu,
    /// tracefs events.
    Tracefs(Group),
    /// Programs.
    Bpf(Box<Bpf>),
}

/// Everything that is open in the kernel. Dropping it closes all of it, the perf events (fields before `way`) first.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The events of process records.
    pub(crate) processes: Processes,
    /// The rings of the probes' perf events, one for each CPU; `None` with programs.
    rings: Option<Rings>,
    /// The probes that are attached.
    pub(crate) probes: Vec<PlannedProbe>,
    /// Their events, in the same order.
    pub(crate) planted: Vec<Planted>,
    /// Those with argument lists, without programs.
    pub(super) fetched: Fetched,
    /// The attach method.
    pub(super) way: Way,
    /// The planned probes that the kernel refused, with the errors.
    pub(crate) refused: Vec<(PlannedProbe, RecordError)>,
    /// Error of the bpf engine, if it was tried first.
    pub(crate) passed_over: Option<RecordError>,
    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    pub(crate) uncounted: Option<&'static str>,
    /// Number of the uprobe PMU.
    pub(crate) pmu: u32,
    /// Size of each ring for samples, bytes.
    pub(crate) ring_bytes: usize,
    /// Size that they should have, bytes. They are smaller if the kernel has no memory.
    pub(crate) wanted_ring_bytes: usize,
    /// Settings of the probes' perf events.
    mode: Mode,
    /// Whether all threads are recorded, by an event for each CPU. Events of single threads follow these to any CPU.
    watches_cpus: bool,
}

/// Parameters of attaching, besides the probes.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// The threads and CPUs to open events for.
    pub(crate) watch: Watch,
    /// Whose hits are recorded.
    pub(crate) filter: Filter,
    /// Whether only hits on the CPUs of `watch` are recorded; otherwise these are all CPUs.
    pub(crate) some_cpus: bool,
    /// Size of the ring of each CPU, bytes; `None` for the default.
    pub(crate) ring_bytes: Option<usize>,
    /// The engine.
    pub(crate) engine: Engine,
    /// Which arguments are read as strings.
    pub(crate) strings: Strings,
    /// Number of bytes of stack that perf events copy for operands whose distance from the stack pointer is unknown.
    pub(crate) stack: u32,
    /// Whether arguments are also written into the raw part of perf events' samples.
    pub(crate) raw_samples: bool,
    /// Whether memory that is not resident is brought in.
    pub(crate) nonresident: NonResident,
    /// Stop processes instead of losing their hits.
    pub(crate) lossless: bool,
    /// Record even if a traced program could make the kernel log a warning.
    pub(crate) force: bool,
    /// Callbacks of attaching.
    pub(crate) planting: Planting<'a>,
}

impl Attached {
    /// Opens everything, disabled, with the first engine that works.
    pub(crate) fn open(
        probes: Vec<PlannedProbe>,
        wanted: &Wanted<'_>,
    ) -> Result<Self, RecordError> {
        let pmu = pmu_type()?;
        let attach_methods = wanted.engine.bpf_attach_methods();
        let mut passed_over = None;
        if !attach_methods.is_empty() {
            match Self::open_bpf(&probes, wanted, attach_methods, pmu) {
                Ok(attached) => return Ok(attached),
                Err(error @ (RecordError::Usage(_) | RecordError::Interrupted(_))) => {
                    return Err(error);
                }
                Err(error)
                    if wanted.engine == Engine::Auto
                        && !wanted.lossless
                        && wanted.nonresident == NonResident::Auto =>
                {
                    passed_over = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        for probe in &probes {
            filter::of_samples(probe)?;
        }
        if wanted.engine == Engine::PerfPmu && probes.iter().any(|probe| probe.captures.is_some()) {
            return Err(UsageError::PmuArguments.into());
        }
        if wanted.lossless {
            return Err(UsageError::NeedsBpf("lossless recording").into());
        }
        if wanted.nonresident != NonResident::Auto {
            return Err(UsageError::NeedsBpf("reading memory that is not resident").into());
        }
        match (Self::open_perf(probes, wanted, pmu), passed_over) {
            (Ok(mut attached), bpf) => {
                attached.passed_over = bpf;
                Ok(attached)
            }
            (
                Err(
                    perf @ (RecordError::Kernel { .. }
                    | RecordError::Attach { .. }
                    | RecordError::NoTracefs(_)),
                ),
                Some(bpf),
            ) => Err(RecordError::NoEngine {
                bpf: Box::new(bpf),
                perf: Box::new(perf),
            }),
            (Err(error), _) => Err(error),
        }
    }

    fn open_bpf(
        probes: &[PlannedProbe],
        wanted: &Wanted<'_>,
        attach_methods: &[AttachMethod],
        pmu: u32,
    ) -> Result<Self, RecordError> {
        let mut attached = Self::empty(wanted, pmu)?;
        let cpus = &wanted.watch.cpus;
        let wanted_bytes = ring_bytes(wanted.ring_bytes, cpus.len());
        let metadata = &attached.processes.attr;
        let largest = metadata.ids.iter().max();
        let (mut bpf, refused) = Bpf::open(
            probes,
            &bpf::Wanted {
                attach_methods,
                filter: wanted.filter.clone(),
                cpus,
                some_cpus: wanted.some_cpus,
                ring_bytes: wanted_bytes,
                strings: wanted.strings,
                nonresident: wanted.nonresident,
                lossless: wanted.lossless,
                first_id: largest.map_or(1, |id| id + 1),
                metadata: &metadata.attr,
                pmu,
                planting: wanted.planting,
            },
        )?;
        attached.ring_bytes = bpf.ring_bytes();
        attached.wanted_ring_bytes = wanted_bytes;
        attached.refused = refused;
        attached.planted = bpf
            .take_planted()
            .map(|(site_ids, attr)| Planted {
                events: Vec::new(),
                places: Vec::new(),
                site_ids,
                attr,
            })
            .collect();
        attached.probes = bpf.probes().cloned().collect();
        attached.way = Way::Bpf(Box::new(bpf));
        Ok(attached)
    }

    fn open_perf(
        probes: Vec<PlannedProbe>,
        wanted: &Wanted<'_>,
        pmu: u32,
    ) -> Result<Self, RecordError> {
        let watch = &wanted.watch;
        // Events of the uprobe PMU count wrong on several CPUs, so they are the last resort.
        let needs_tracefs = watch.inherit || probes.iter().any(|probe| probe.captures.is_some());
        let by_tracefs = match wanted.engine {
            Engine::PerfPmu if watch.inherit => {
                return Err(UsageError::PmuInherit.into());
            }
            Engine::PerfPmu => false,
            _ => true,
        };
        let group = by_tracefs.then(Group::new);
        let group = match group {
            Some(Err(error)) if needs_tracefs || wanted.engine == Engine::PerfTracefs => {
                return Err(error);
            }
            group => group.and_then(Result::ok),
        };
        let (lists, probes): (Vec<_>, Vec<_>) = probes
            .into_iter()
            .partition(|probe| probe.captures.is_some());
        let probes = samples::split(probes, wanted.stack);
        let (fetched, lists) = Fetched::plan(&lists, wanted.strings, wanted.force)?;
        let mut attached = Self::empty(wanted, pmu)?;
        attached.fetched = fetched;
        if let Some(group) = group {
            attached.way = Way::Tracefs(group);
        }
        let mode = attached.mode;
        attached.uncounted = uncounted(&attached.way, mode, wanted);
        let rings = Rings::map(mode, &watch.cpus, wanted.ring_bytes)?;
        attached.ring_bytes = rings.bytes();
        attached.wanted_ring_bytes = rings.bytes();
        let plain = probes.iter().map(|probe| probe.sites.len());
        let listed = lists.iter().map(|list| list.probe.sites.len());
        wanted
            .planting
            .announce(removals(plain.chain(listed).sum(), &attached.way, watch));
        let lists = lists.into_iter().map(|list| (list.probe, Some(list.first)));
        for (probe, list) in probes.into_iter().map(|probe| (probe, None)).chain(lists) {
            match attached.plant(&probe, list, (mode, wanted, &rings)) {
                Ok(planted) => {
                    attached.planted.push(planted);
                    attached.probes.push(probe);
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) => attached.refused.push((probe, error)),
            }
        }
        attached.rings = Some(rings);
        Ok(attached)
    }

    /// The events of process records, without probes.
    fn empty(wanted: &Wanted<'_>, pmu: u32) -> Result<Self, RecordError> {
        let watch = &wanted.watch;
        let mode = supported(watch)?;
        Ok(Self {
            processes: Processes::open(mode, watch, pmu)?,
            rings: None,
            probes: Vec::new(),
            planted: Vec::new(),
            fetched: Fetched::default(),
            way: Way::Pmu,
            refused: Vec::new(),
            passed_over: None,
            uncounted: None,
            pmu,
            ring_bytes: 0,
            wanted_ring_bytes: 0,
            mode,
            watches_cpus: watch.tids == [-1],
        })
    }

    /// All events of probes.
    fn site_events(&self) -> impl Iterator<Item = &Event> {
        self.planted.iter().flat_map(|planted| &planted.events)
    }

    /// Enables the probes.
    pub(crate) fn enable(&self) -> io::Result<()> {
        if let Way::Bpf(bpf) = &self.way {
            bpf.enable();
        }
        self.site_events().try_for_each(Event::enable)
    }

    /// Whether the probes must be enabled by [`enable`](Self::enable) even if a command is recorded from its start; otherwise the kernel
    /// enables them at its `execve(2)`.
    pub(crate) const fn starts_by_hand(&self) -> bool {
        matches!(self.way, Way::Bpf(_))
    }

    /// Starts removing the probes, by passing all descriptors to a helper.
    pub(crate) fn release(&mut self) -> Release {
        Release::start(self.take_descriptors())
    }

    /// Takes the descriptors that keep the probes attached.
    pub(super) fn take_descriptors(&mut self) -> Descriptors {
        if let Way::Bpf(bpf) = &mut self.way {
            return bpf.take_descriptors();
        }
        let events = self.planted.iter_mut();
        let events = events.flat_map(|planted| std::mem::take(&mut planted.events));
        Descriptors {
            events: events.map(OwnedFd::from).collect(),
            ..Descriptors::default()
        }
    }

    /// Leaves the tracefs events to the guard, because the kernel may not let them be removed now.
    pub(crate) fn leave_to_guard(&mut self) {
        if let Way::Tracefs(group) = &mut self.way {
            group.leave_to_guard();
        }
    }

    /// Whether hits are counted by events of single CPUs, which the kernel closes when the CPU goes off line.
    pub(crate) const fn counts_by_cpu(&self) -> bool {
        !matches!(self.way, Way::Bpf(_))
    }

    /// Whether removing the probes is fast, and reports when the last program has ended. Then it is started before the last records are
    /// read.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(&self.way, Way::Bpf(bpf) if bpf.attach_method() == AttachMethod::Multi)
    }

    /// Records on CPUs that have come on line, if all CPUs are recorded. Hits of events that cannot be opened are missing, like earlier
    /// hits on those CPUs.
    pub(crate) fn follow_to(&mut self, cpus: &[u32]) {
        if !self.watches_cpus {
            return;
        }
        for &cpu in cpus {
            let _ = self.processes.follow_to(cpu);
            let _ = self.plant_on(cpu);
        }
    }

    /// Opens the perf events of all sites on another CPU.
    fn plant_on(&mut self, cpu: u32) -> Result<(), RecordError> {
        let Some(rings) = &mut self.rings else {
            return Ok(());
        };
        rings.add(cpu)?;
        for (probe, planted) in self.probes.iter().zip(&mut self.planted) {
            let path = probe.file().kernel_path();
            for (place, ids) in planted.places.iter().zip(&planted.site_ids) {
                let attr = KernelAttr::of(place, &path, self.mode, &probe.plan);
                let mut event = planting(|| Event::open(&attr, -1, cpu)).map_err(refusal)?;
                let known = ids.first().copied().unwrap_or(event.id);
                rings.redirect_as(&mut event, known).map_err(refusal)?;
                event.enable().map_err(refusal)?;
                planted.events.push(event);
            }
        }
        Ok(())
    }

    /// Disables everything; the rings keep their records. Continues processes that were stopped.
    pub(crate) fn disable(&mut self) -> io::Result<()> {
        if let Way::Bpf(bpf) = &mut self.way {
            bpf.disable();
        }
        self.site_events().try_for_each(Event::disable)?;
        self.processes.disable()
    }

    /// One pass over all rings: samples first, so that earlier process records are in the same pass. Returns whether it left many records
    /// in the rings of programs.
    /// `changes` gets a copy of the process records.
    pub(crate) fn drain(
        &mut self,
        mut sink: impl FnMut(&[u8]),
        mut changes: Option<&mut Vec<u8>>,
    ) -> bool {
        let left = match &mut self.way {
            Way::Bpf(bpf) => bpf.drain(&mut sink),
            _ => false,
        };
        if let Some(rings) = &mut self.rings {
            rings.drain(|records| self.fetched.pass(records, &mut sink));
        }
        self.processes.drain(&mut |records: &[u8]| {
            if let Some(changes) = &mut changes {
                changes.extend_from_slice(records);
            }
            sink(records);
        });
        left
    }

    /// The last pass, after [`disable`](Self::disable).
    /// With `release`, waits until the last program has ended, which it reports, but not longer than programs usually run. Returns the
    /// number of hits that are missing because their programs had not ended.
    pub(crate) fn drain_last(
        &mut self,
        release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]),
    ) -> u64 {
        let mut unfinished = 0;
        if let Way::Bpf(bpf) = &mut self.way {
            unfinished = bpf.drain_last(release, &mut sink);
        }
        self.drain(sink, None);
        unfinished
    }

    /// Name of the engine, and the attach method.
    pub(crate) fn engine(&self) -> (&'static str, String) {
        match &self.way {
            Way::Pmu => ("perf", "uprobe PMU".to_owned()),
            Way::Tracefs(_) => ("perf", "tracefs".to_owned()),
            Way::Bpf(bpf) => ("bpf", bpf.attach_method().to_string()),
        }
    }

    /// Whether probes are attached to the recorded processes and their children only.
    pub(crate) fn spares_strangers(&self) -> bool {
        matches!(&self.way, Way::Bpf(bpf) if bpf.is_apart())
    }

    /// Why probes were attached to all processes of the files, after they had been attached to the recorded processes only; `None` if they
    /// were not.
    pub(crate) fn planted_everywhere(&self) -> Option<String> {
        match &self.way {
            Way::Bpf(bpf) => bpf.planted_everywhere(),
            _ => None,
        }
    }

    /// What is open in the kernel for the probes, as text.
    pub(crate) fn in_kernel(&self) -> String {
        match &self.way {
            Way::Bpf(bpf) => format!(
                "{} programs{}{}, {} links {}",
                bpf.programs(),
                match bpf.nonresident() {
                    NonResident::Auto => "",
                    NonResident::Always => " that wait for any memory",
                    NonResident::Never => " that read resident memory only",
                },
                match bpf.untouched() {
                    Some(reason) => format!(" ({reason})"),
                    None => String::new(),
                },
                bpf.links(),
                bpf.place()
            ),
            _ => format!("{} perf events", self.site_events().count()),
        }
    }

    /// The formats of the samples' raw parts, for stock perf.
    pub(crate) fn formats(&self) -> Vec<TracepointFormat> {
        match &self.way {
            Way::Bpf(bpf) => bpf.formats(),
            _ => self.fetched.formats(),
        }
    }

    /// How often stopping processes was suspended, because the ring was not drained for long.
    pub(crate) fn suspensions(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.suspensions(),
            _ => 0,
        }
    }

    /// The attach methods of programs that do not work here, with the reasons, as lines of text.
    pub(crate) fn skipped(&self) -> Vec<String> {
        let Way::Bpf(bpf) = &self.way else {
            return Vec::new();
        };
        let skipped = bpf.skipped().iter();
        skipped
            .map(|(attach_method, reason)| format!("{attach_method} not used: {reason}"))
            .collect()
    }

    /// Number of lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub(crate) fn unjudged(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.unjudged(),
            _ => 0,
        }
    }

    /// Number of processes that may have run before they had probes. Their first hits are not in the trace.
    pub(crate) fn missed(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.missed(),
            _ => 0,
        }
    }

    /// The descriptor of the rings of the programs, with programs. It becomes readable with the first record.
    pub(crate) fn program_rings(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::Bpf(bpf) => Some(bpf.descriptor()),
            _ => None,
        }
    }

    /// Descriptors that become readable when the ring of a CPU has many records.
    pub(crate) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let samples = self.rings.iter().flat_map(Rings::readable);
        samples.chain(self.processes.readable())
    }

    /// The count of each sample id: index of its probe, sample id, count.
    pub(crate) fn counts(&self) -> Box<dyn Iterator<Item = io::Result<(usize, u64, Count)>> + '_> {
        if let Way::Bpf(bpf) = &self.way {
            return Box::new(bpf.counts().map(Ok));
        }
        let planted = self.planted.iter().enumerate();
        Box::new(planted.flat_map(|(index, planted)| {
            let events = planted.events.iter();
            events.map(move |event| Ok((index, event.id, event.count()?)))
        }))
    }
}

/// Size of each ring of the programs, bytes, a power of two.
fn ring_bytes(wanted: Option<usize>, cpus: usize) -> usize {
    let cpus = cpus.max(1);
    let bytes = wanted.unwrap_or((DEFAULT_RINGS / cpus).clamp(LEAST_DEFAULT_RING, DEFAULT_RING));
    let bytes = bytes.min(MAX_RINGS / cpus).max(rustix::param::page_size());
    1 << bytes.ilog2()
}

/// Why perf events may miss hits or count them twice without reporting it.
fn uncounted(way: &Way, mode: Mode, wanted: &Wanted) -> Option<&'static str> {
    let watch = &wanted.watch;
    match way {
        _ if matches!(wanted.filter, Filter::ProcessesAlone(_)) => {
            Some("perf events that are not inherited miss threads that begin later")
        }
        // A tracefs event is one consumer of a site, however many perf events are opened on it.
        Way::Tracefs(_) if watch.inherit => {
            Some("the kernel's inherited perf events miss hits of children, uncounted")
        }
        // Each PMU event is a consumer of its own. They run one after the other, and each compares its CPU with the current one.
        Way::Pmu if watch.cpus.len() > 1 => Some(
            "perf events of the uprobe PMU, one for each CPU, miss a hit or count it twice when its thread changes the CPU",
        ),
        _ if !mode.counts_losses => {
            Some("this kernel does not count what perf events lose (Linux 6.0)")
        }
        _ => None,
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut release = self.release();
        if !release.wait(LAST_PATIENCE) {
            self.leave_to_guard();
        }
    }
}

/// The settings of events that this kernel supports, found by trying.
fn supported(watch: &Watch) -> Result<Mode, RecordError> {
    let mode = Mode {
        inherit: watch.inherit,
        enable_on_exec: watch.enable_on_exec,
        counts_losses: true,
    };
    let &[cpu, ..] = watch.cpus.as_slice() else {
        return Err(TargetError::NoCpu.into());
    };
    for mode in [
        mode,
        Mode {
            counts_losses: false,
            ..mode
        },
    ] {
        match Event::open(&KernelAttr::ring_owner(mode, 1), -1, cpu) {
            Ok(_) => return Ok(mode),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(refusal(error)),
        }
    }
    Err(refusal(io::Error::from_raw_os_error(libc::EINVAL)))
}

/// Number of perf events whose removal takes long: of a tracefs event, only the last perf event that is opened on it.
fn removals(sites: usize, way: &Way, watch: &Watch) -> usize {
    match way {
        Way::Tracefs(_) => sites,
        _ => sites * watch.cpus.len() * watch.tids.len(),
    }
}

fn pmu_type() -> Result<u32, RecordError> {
    let text = fs::read_to_string(PMU_TYPE).map_err(|source| RecordError::Kernel {
        what: format!("this kernel has no uprobe PMU (it needs CONFIG_UPROBE_EVENTS and Linux 4.17): cannot read {PMU_TYPE}"),
        source,
    })?;
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a number, found {text:?}"),
        )
    };
    text.trim().parse().map_err(|_| RecordError::Host {
        what: PMU_TYPE.to_owned(),
        source: wrong(),
    })
}
