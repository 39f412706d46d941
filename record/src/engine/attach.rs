//! The perf engine: one perf event for each site, traced thread and CPU; one ring for each CPU.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use usdtrec_format::perf::EventAttr;

use super::event::{Count, Event, KernelAttr, Mode};
use super::group::Group;
use super::ring::Ring;
use crate::RecordError;
use crate::select::PlannedProbe;

/// Number of the uprobe PMU (`/sys/bus/event_source/devices/uprobe/type`, Linux 4.17).
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Largest sum of all rings where the size was not asked for.
const MAX_DEFAULT_RINGS: usize = 256 << 20;

/// Who is watched, as the kernel takes it.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Threads; -1 alone for all.
    pub(crate) tids: Vec<i32>,
    /// CPUs, sorted.
    pub(crate) cpus: Vec<u32>,
    /// Follow later threads and children.
    pub(crate) inherit: bool,
    /// Begin at the next `execve(2)` of the thread.
    pub(crate) enable_on_exec: bool,
}

/// The events of one planned probe.
#[derive(Debug)]
pub(crate) struct Planted {
    /// Its events, those of each site apart, in the order of the plan's sites.
    pub(crate) sites: Vec<Vec<Event>>,
    /// The attr that they share.
    pub(crate) attr: EventAttr,
}

/// How sites become perf events.
#[derive(Debug)]
enum Way {
    /// By the uprobe PMU: nothing outlives the descriptors, but nothing can be inherited.
    Pmu,
    /// By tracefs events.
    Tracefs(Group),
}

/// Everything that is open in the kernel. Dropping it takes all of it away, the perf events (fields before `way`) first.
#[derive(Debug)]
pub(crate) struct Attached {
    /// One ring for each CPU.
    pub(crate) rings: Vec<Ring>,
    /// Metadata events of the threads that own no ring.
    followers: Vec<Event>,
    /// The probes, in the order of the plan; without those in `refused`.
    pub(crate) planted: Vec<Planted>,
    /// The metadata event's attr.
    pub(crate) metadata: EventAttr,
    /// How sites are planted.
    way: Way,
    /// Indexes of the planned probes that the kernel did not take, and why.
    pub(crate) refused: Vec<(usize, RecordError)>,
    /// Number of the uprobe PMU.
    pub(crate) pmu: u32,
    /// Bytes of each ring.
    pub(crate) ring_bytes: usize,
}

impl Attached {
    /// Opens, but does not start, everything. `ring_bytes` `None` leaves the size to us.
    pub(crate) fn open(
        probes: &[PlannedProbe],
        watch: &Watch,
        ring_bytes: Option<usize>,
    ) -> Result<Self, RecordError> {
        let pmu = pmu_type()?;
        let mode = Mode {
            inherit: watch.inherit,
            enable_on_exec: watch.enable_on_exec,
            counts_losses: true,
            build_ids: true,
        };
        let mode = supported(mode, watch)?;
        let (rings, followers, metadata, ring_bytes) = open_rings(mode, watch, ring_bytes, pmu)?;
        let way = if watch.inherit {
            Way::Tracefs(Group::new()?)
        } else {
            Way::Pmu
        };
        let mut attached = Self {
            rings,
            followers,
            planted: Vec::new(),
            metadata,
            way,
            refused: Vec::new(),
            pmu,
            ring_bytes,
        };
        for (index, probe) in probes.iter().enumerate() {
            match attached.plant(probe, mode, watch) {
                Ok(planted) => attached.planted.push(planted),
                Err(error) => attached.refused.push((index, error)),
            }
        }
        Ok(attached)
    }

    /// Opens the events of one probe.
    fn plant(
        &mut self,
        probe: &PlannedProbe,
        mode: Mode,
        watch: &Watch,
    ) -> Result<Planted, RecordError> {
        let path = CString::new(probe.path.as_os_str().as_bytes()).map_err(|_| {
            RecordError::Refused(format!("{}: the path has a NUL byte", probe.event()))
        })?;
        let mut sites = Vec::new();
        let mut for_trace = None;
        for site in &probe.sites {
            let (offset, ref_ctr) = probe.offsets(site)?;
            let refused = |source: io::Error| RecordError::Kernel {
                what: format!(
                    "the kernel does not plant {} at {} offset {offset:#x}{}",
                    probe.event(),
                    probe.path.display(),
                    hint(&source)
                ),
                source,
            };
            let attr = match &mut self.way {
                Way::Pmu => KernelAttr::uprobe(mode, self.pmu, &path, offset, ref_ctr, probe.plan),
                Way::Tracefs(group) => {
                    let id = group.add(&probe.path, offset, ref_ctr).map_err(refused)?;
                    KernelAttr::tracepoint(mode, id, probe.plan)
                }
            };
            for_trace.get_or_insert_with(|| attr.for_trace(self.pmu));
            sites.push(self.open_site(&attr, watch).map_err(refused)?);
        }
        let ids = sites
            .iter()
            .flatten()
            .map(|event: &Event| event.id)
            .collect();
        let attr = for_trace
            .ok_or_else(|| RecordError::Refused(format!("{} has no site", probe.event())))?;
        Ok(Planted {
            sites,
            attr: EventAttr {
                attr,
                name: probe.event(),
                ids,
            },
        })
    }

    fn open_site(&self, attr: &KernelAttr<'_>, watch: &Watch) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        for &tid in &watch.tids {
            for (cpu, ring) in watch.cpus.iter().zip(&self.rings) {
                match Event::open(attr, tid, *cpu) {
                    Ok(event) => {
                        event.redirect(ring.owner().as_fd())?;
                        events.push(event);
                    }
                    Err(error) if has_ended(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(events)
    }

    /// All events but the metadata ones.
    fn site_events(&self) -> impl Iterator<Item = &Event> {
        self.planted
            .iter()
            .flat_map(|planted| planted.sites.iter().flatten())
    }

    /// The metadata events.
    fn metadata_events(&self) -> impl Iterator<Item = &Event> {
        self.rings.iter().map(Ring::owner).chain(&self.followers)
    }

    /// Starts the metadata events, so that processes are known before their first hit.
    pub(crate) fn enable_metadata(&self) -> io::Result<()> {
        self.metadata_events().try_for_each(Event::enable)
    }

    /// Starts the probes.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.site_events().try_for_each(Event::enable)
    }

    /// Stops everything; what is in the rings stays there.
    pub(crate) fn disable(&self) -> io::Result<()> {
        self.site_events()
            .chain(self.metadata_events())
            .try_for_each(Event::disable)
    }

    /// How the sites are planted, in words.
    pub(crate) fn way(&self) -> &'static str {
        match self.way {
            Way::Pmu => "uprobe PMU",
            Way::Tracefs(_) => "tracefs",
        }
    }

    /// Number of probe events open in the kernel.
    pub(crate) fn events(&self) -> usize {
        self.site_events().count()
    }

    /// Descriptors to poll: a ring's becomes readable; any of them hangs up when its thread, and all that
    /// it started, have ended.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.metadata_events().map(AsFd::as_fd)
    }

    /// What each event counted: index of its probe among the planted, sample id, count.
    pub(crate) fn counts(&self) -> impl Iterator<Item = io::Result<(usize, u64, Count)>> {
        self.planted
            .iter()
            .enumerate()
            .flat_map(|(index, planted)| {
                let events = planted.sites.iter().flatten();
                events.map(move |event| Ok((index, event.id, event.count()?)))
            })
    }
}

type Rings = (Vec<Ring>, Vec<Event>, EventAttr, usize);

/// Opens the metadata events and maps the rings of the first thread's.
fn open_rings(
    mode: Mode,
    watch: &Watch,
    asked: Option<usize>,
    pmu: u32,
) -> Result<Rings, RecordError> {
    let page = rustix::param::page_size();
    let mut bytes = asked.unwrap_or_else(|| default_ring(watch.cpus.len(), page));
    let attr = KernelAttr::metadata(mode, (bytes / 4) as u32);
    let mut rings: Vec<Ring> = Vec::new();
    let mut followers = Vec::new();
    for &tid in &watch.tids {
        let mut owned = Vec::new();
        for &cpu in &watch.cpus {
            match Event::open(&attr, tid, cpu) {
                Ok(event) => owned.push(event),
                Err(error) if has_ended(&error) => break,
                Err(source) => return Err(refusal(source)),
            }
        }
        if owned.len() < watch.cpus.len() {
            continue;
        }
        if rings.is_empty() {
            rings = map_rings(owned, &mut bytes, asked.is_some(), page)?;
            continue;
        }
        for (event, ring) in owned.into_iter().zip(&rings) {
            event.redirect(ring.owner().as_fd()).map_err(refusal)?;
            followers.push(event);
        }
    }
    if rings.is_empty() {
        return Err(RecordError::Target(
            "the processes or threads to be recorded have all ended".to_owned(),
        ));
    }
    let owners = rings.iter().map(Ring::owner).chain(&followers);
    let ids = owners.map(|event| event.id).collect();
    // perf's name for an event that is there for its side records only, in user space.
    let metadata = EventAttr {
        attr: attr.for_trace(pmu),
        name: "dummy:u".to_owned(),
        ids,
    };
    Ok((rings, followers, metadata, bytes))
}

/// Maps a ring for each event; unless the size was asked for, a smaller one where the kernel allows no larger.
fn map_rings(
    mut owners: Vec<Event>,
    bytes: &mut usize,
    asked: bool,
    page: usize,
) -> Result<Vec<Ring>, RecordError> {
    let mut rings = Vec::new();
    owners.reverse();
    while let Some(owner) = owners.pop() {
        match Ring::map(owner, *bytes, page) {
            Ok(ring) => rings.push(ring),
            Err((owner, error)) if !asked && *bytes > page && is_too_large(&error) => {
                *bytes /= 2;
                // All rings get one size: start over with the smaller.
                owners.push(owner);
                owners.extend(rings.drain(..).rev().map(Ring::into_owner));
            }
            Err((_, source)) => {
                let what = format!(
                    "cannot map a ring of {bytes} bytes for each of the CPUs; a smaller -m needs less locked memory \
                     (kernel.perf_event_mlock_kb, ulimit -l, or CAP_IPC_LOCK)"
                );
                return Err(RecordError::Kernel { what, source });
            }
        }
    }
    Ok(rings)
}

/// 4 MiB, or less on machines with many CPUs.
fn default_ring(cpus: usize, page: usize) -> usize {
    let mut bytes = 4 << 20;
    while bytes * cpus > MAX_DEFAULT_RINGS && bytes > 16 * page {
        bytes /= 2;
    }
    bytes
}

/// The mode without what this kernel is too old for, found by trying.
fn supported(mode: Mode, watch: &Watch) -> Result<Mode, RecordError> {
    let modes = [
        mode,
        Mode {
            counts_losses: false,
            ..mode
        },
        Mode {
            counts_losses: false,
            build_ids: false,
            ..mode
        },
    ];
    let (Some(&cpu), Some(&tid)) = (watch.cpus.first(), watch.tids.first()) else {
        return Err(RecordError::Target(
            "there is no thread and no CPU to record".to_owned(),
        ));
    };
    for mode in modes {
        match Event::open(&KernelAttr::metadata(mode, 1), tid, cpu) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) if !has_ended(&error) => return Err(refusal(error)),
            _ => return Ok(mode),
        }
    }
    Err(refusal(io::Error::from_raw_os_error(libc::EINVAL)))
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

/// Whether a thread was gone before its event could be opened.
fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

fn is_too_large(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

fn refusal(source: io::Error) -> RecordError {
    RecordError::Kernel {
        what: format!("the kernel refuses a perf event{}", hint(&source)),
        source,
    }
}

/// What to do about an error of `perf_event_open(2)`.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => {
            " (too many open files: fewer probes, threads or CPUs, or a higher ulimit -n)"
        }
        Some(libc::EACCES | libc::EPERM) => " (not permitted)",
        Some(libc::EINVAL) => {
            " (the file's bytes there are no instruction, or its semaphore is in use otherwise)"
        }
        _ => "",
    }
}
