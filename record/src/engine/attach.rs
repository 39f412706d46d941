//! What is open in the kernel: metadata events; and the probes, with programs (the bpf engine) or
//! with one perf event for each site, traced thread and CPU (the perf engine).

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

/// Bytes of the ring that programs write to where the size was not asked for, and most that are allowed.
const DEFAULT_SHARED_RING: usize = 16 << 20;
const MAX_SHARED_RING: usize = 1 << 30;

/// How long is waited for the probes of a session that ends before it began.
pub(super) const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The events of one planned probe.
#[derive(Debug)]
pub(crate) struct Planted {
    /// Its perf events; none where programs capture.
    pub(super) events: Vec<Event>,
    /// Where its perf events are, for each site.
    pub(super) places: Vec<Place>,
    /// The sample ids of each site, in the order of the plan's sites.
    pub(crate) site_ids: Vec<Vec<u64>>,
    /// The attr that they share.
    pub(crate) attr: EventAttr,
}

/// How sites are planted.
#[derive(Debug)]
pub(super) enum Way {
    /// By the uprobe PMU: nothing outlives the descriptors, but nothing can be inherited.
    Pmu,
    /// By tracefs events.
    Tracefs(Group),
    /// By programs.
    Bpf(Box<Bpf>),
}

/// Everything that is open in the kernel. Dropping it takes all of it away, the perf events (fields before `way`) first.
#[derive(Debug)]
pub(crate) struct Attached {
    /// What happens to processes.
    pub(crate) processes: Processes,
    /// The rings of the probes' perf events, one for each CPU; none where programs capture.
    rings: Option<Rings>,
    /// The probes that are planted.
    pub(crate) probes: Vec<PlannedProbe>,
    /// Their events, in the same order.
    pub(crate) planted: Vec<Planted>,
    /// Those with lists of arguments, where no programs capture.
    pub(super) fetched: Fetched,
    /// How sites are planted.
    pub(super) way: Way,
    /// The planned probes that the kernel did not take, and why.
    pub(crate) refused: Vec<(PlannedProbe, RecordError)>,
    /// Why better engines were passed over.
    pub(crate) passed_over: Vec<RecordError>,
    /// Why hits may be missing, or there twice, that are not counted as lost; `None` if there are none.
    pub(crate) uncounted: Option<&'static str>,
    /// Number of the uprobe PMU.
    pub(crate) pmu: u32,
    /// Bytes of each ring for samples.
    pub(crate) ring_bytes: usize,
    /// How perf events of the probes are opened.
    mode: Mode,
    /// Whether all threads are watched, by events of single CPUs. Others end with their threads, and go with these to any CPU.
    watches_cpus: bool,
}

/// What is asked, apart from the probes.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// Who is watched.
    pub(crate) watch: Watch,
    /// Whose hits count.
    pub(crate) filter: Filter,
    /// Whether only hits on the CPUs of `watch` count; otherwise those are all that there are.
    pub(crate) some_cpus: bool,
    /// Bytes of each CPU's ring; `None` leaves it to us.
    pub(crate) ring_bytes: Option<usize>,
    /// How to capture.
    pub(crate) engine: Engine,
    /// Which strings are read.
    pub(crate) strings: Strings,
    /// Bytes of stack that perf events copy for operands whose depth is unknown.
    pub(crate) stack: u32,
    /// Whether samples of perf events get their arguments as raw data besides.
    pub(crate) raw_samples: bool,
    /// What is done about memory that is not resident.
    pub(crate) nonresident: NonResident,
    /// Stop processes rather than lose their hits.
    pub(crate) lossless: bool,
    /// Record although a traced program could make the kernel warn.
    pub(crate) force: bool,
    /// What ends the planting, and hears of its cost.
    pub(crate) planting: Planting<'a>,
}

impl Attached {
    /// Opens, but does not start, everything, with the first engine that works.
    pub(crate) fn open(
        probes: Vec<PlannedProbe>,
        wanted: &Wanted<'_>,
    ) -> Result<Self, RecordError> {
        let pmu = pmu_type()?;
        let attach_methods = wanted.engine.bpf_attach_methods();
        let mut passed_over = Vec::new();
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
                    passed_over.push(error)
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
        let mut attached = Self::open_perf(probes, wanted, pmu)?;
        attached.passed_over = passed_over;
        Ok(attached)
    }

    fn open_bpf(
        probes: &[PlannedProbe],
        wanted: &Wanted<'_>,
        attach_methods: &[AttachMethod],
        pmu: u32,
    ) -> Result<Self, RecordError> {
        let mut attached = Self::empty(wanted, pmu)?;
        let cpus = wanted.watch.cpus.len();
        let ring_bytes = wanted
            .ring_bytes
            .map_or(DEFAULT_SHARED_RING, |bytes| bytes.saturating_mul(cpus));
        let metadata = &attached.processes.attr;
        let largest = metadata.ids.iter().max();
        let (mut bpf, refused) = Bpf::open(
            probes,
            &bpf::Wanted {
                attach_methods,
                filter: wanted.filter.clone(),
                cpus: wanted.some_cpus.then_some(&wanted.watch.cpus),
                ring_bytes: ring_bytes.min(MAX_SHARED_RING).next_power_of_two(),
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
        // Events of the uprobe PMU count wrong on several CPUs: they are the last resort.
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

    /// Metadata events, and no probe yet.
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
            passed_over: Vec::new(),
            uncounted: None,
            pmu,
            ring_bytes: 0,
            mode,
            watches_cpus: watch.tids == [-1],
        })
    }

    /// All events but the metadata ones.
    fn site_events(&self) -> impl Iterator<Item = &Event> {
        self.planted.iter().flat_map(|planted| &planted.events)
    }

    /// Starts the probes.
    pub(crate) fn enable(&self) -> io::Result<()> {
        if let Way::Bpf(bpf) = &self.way {
            bpf.enable();
        }
        self.site_events().try_for_each(Event::enable)
    }

    /// Whether the probes are started by [`enable`](Self::enable) also where they are to count from a command's beginning:
    /// otherwise the kernel starts them at its `execve(2)`.
    pub(crate) const fn starts_by_hand(&self) -> bool {
        matches!(self.way, Way::Bpf(_))
    }

    /// Begins to let go of the probes, of which no descriptor is left here.
    pub(crate) fn release(&mut self) -> Release {
        Release::start(self.take_descriptors())
    }

    /// What holds the probes planted.
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

    /// Leaves to the guard what the kernel may not let us take away now.
    pub(crate) fn leave_to_guard(&mut self) {
        if let Way::Tracefs(group) = &mut self.way {
            group.leave_to_guard();
        }
    }

    /// Whether hits are counted by events of single CPUs, which the kernel drops when such a CPU goes off line.
    pub(crate) const fn counts_by_cpu(&self) -> bool {
        !matches!(self.way, Way::Bpf(_))
    }

    /// Whether letting go of the probes is quick, and tells when the last program has ended: it is begun before the last records are
    /// read.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(&self.way, Way::Bpf(bpf) if bpf.attach_method() == AttachMethod::Multi)
    }

    /// Records on CPUs that have come on line, if all CPUs are watched. What cannot be opened is missing like hits of the moments before.
    pub(crate) fn follow_to(&mut self, cpus: &[u32]) {
        if !self.watches_cpus {
            return;
        }
        for &cpu in cpus {
            let _ = self.processes.follow_to(cpu);
            let _ = self.plant_on(cpu);
        }
    }

    /// The perf events of all sites, on one more CPU.
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

    /// Stops everything; what is in the rings stays there. Processes that were stopped go on.
    pub(crate) fn disable(&mut self) -> io::Result<()> {
        if let Way::Bpf(bpf) = &mut self.way {
            bpf.disable();
        }
        self.site_events().try_for_each(Event::disable)?;
        self.processes.disable()
    }

    /// One pass over all rings: samples first, so that what their processes did before is there with them. Tells whether it has
    /// left much in the shared ring.
    /// `changes` gets a copy of what processes did.
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
    /// With `release`, until the last program has ended, which that tells; but not for longer than programs usually run. Gives the
    /// number of hits that were left out, because their programs had not ended.
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

    /// The engine's name, and how the sites are planted.
    pub(crate) fn engine(&self) -> (&'static str, String) {
        match &self.way {
            Way::Pmu => ("perf", "uprobe PMU".to_owned()),
            Way::Tracefs(_) => ("perf", "tracefs".to_owned()),
            Way::Bpf(bpf) => ("bpf", bpf.attach_method().to_string()),
        }
    }

    /// Whether probes are in the recorded processes and their children alone.
    pub(crate) fn spares_strangers(&self) -> bool {
        matches!(&self.way, Way::Bpf(bpf) if bpf.is_apart())
    }

    /// Why probes are in all processes of the files, after they were in the recorded processes alone; `None` if they are not.
    pub(crate) fn planted_everywhere(&self) -> Option<String> {
        match &self.way {
            Way::Bpf(bpf) => bpf.planted_everywhere(),
            _ => None,
        }
    }

    /// What is open in the kernel for the probes, in words.
    pub(crate) fn in_kernel(&self) -> String {
        match &self.way {
            Way::Bpf(bpf) => format!(
                "{} programs{}{}, {} links {}, one ring",
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
            _ => format!(
                "{} perf events, one ring for each CPU",
                self.site_events().count()
            ),
        }
    }

    /// The formats of the samples' raw parts, for stock perf.
    pub(crate) fn formats(&self) -> Vec<TracepointFormat> {
        match &self.way {
            Way::Bpf(bpf) => bpf.formats(),
            _ => self.fetched.formats(),
        }
    }

    /// How often `--lossless` was suspended, because nobody looked at the ring for long.
    pub(crate) fn suspensions(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.suspensions(),
            _ => 0,
        }
    }

    /// How many processes may have run before they had probes: their first hits are not in the trace.
    pub(crate) fn missed(&self) -> u64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.missed(),
            _ => 0,
        }
    }

    /// The descriptor of the ring that all CPUs share, if there is one. It becomes readable with the first record.
    pub(crate) fn shared_ring(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::Bpf(bpf) => Some(bpf.descriptor()),
            _ => None,
        }
    }

    /// Descriptors that become readable when a CPU's ring has much.
    pub(crate) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let samples = self.rings.iter().flat_map(Rings::readable);
        samples.chain(self.processes.readable())
    }

    /// What each sample id counted: index of its probe among the planted, sample id, count.
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

/// Why perf events may miss hits, or count them twice, without anybody noticing.
fn uncounted(way: &Way, mode: Mode, wanted: &Wanted) -> Option<&'static str> {
    let watch = &wanted.watch;
    match way {
        _ if matches!(wanted.filter, Filter::ProcessesAlone(_)) => {
            Some("perf events that are not inherited miss threads that begin later")
        }
        // A tracefs event is one consumer of a site, however many perf events are on it.
        Way::Tracefs(_) if watch.inherit => {
            Some("the kernel's inherited perf events miss hits of children, uncounted")
        }
        // Each PMU event is a consumer of its own. They run one after the other, and each looks at the CPU that it then is on.
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

/// How events behave, without what this kernel is too old for, found by trying.
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

/// Perf events that the kernel removes at the end, each after the other: of a tracefs event only the last that is opened on it.
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
