//! The bpf engine: generated programs write whole samples into the ring of their CPU.
//!
//! There are two attach methods, of which the first that works is used: one uprobe_multi link for each program and file, or one event of
//! the uprobe PMU for each site with the program attached.

mod attach;
mod attach_method;
mod attacher;
mod attachment;
mod btf;
mod children;
mod compact;
mod condition;
mod context;
mod control;
mod cpu_rings;
mod follow;
mod hold;
mod insn;
mod kept;
mod kernel;
mod links;
mod members;
mod nonresident;
mod opening;
mod options;
mod plan;
mod program;
mod ringbuf;
mod scope;
mod site_programs;
mod sized;
mod skipped;
mod spared;
mod stopped;
mod sys;
#[cfg(test)]
mod tests;
mod text_lengths;
mod with_stack;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use usdtrec_format::perf::{Attr, EventAttr, SampleType, TracepointFormat};

use self::attach::Attaching;
use self::attacher::{AttachedSites, BadSite};
use self::attachment::Attachment;
use self::btf::Btf;
use self::children::Children;
use self::compact::Habit;
use self::control::Control;
use self::cpu_rings::{CpuRings, Sizes};
use self::follow::Tracked;
use self::nonresident::Touch;
use self::program::{Common, Stop, ThreadBase};
use self::ringbuf::Left;
use self::site_programs::{Maps, Site};
use self::stopped::Stopped;
use self::text_lengths::TextLengths;
use super::event::{Count, IdCount};
use super::release::{Descriptors, Release};
use crate::RecordError;
use crate::kernel_error::{BpfObject, BpfRefusal, KernelOperation};
use crate::plan::call_graph::CallGraph;
use crate::probe::{PlannedProbe, RefusedProbe};

pub use self::attach_method::AttachMethod;
pub use self::children::EverywhereReason;
pub(super) use self::compact::{StoredText, TextLimits, finish, put_text};
pub use self::kept::StoppedProcess;
pub(crate) use self::kept::stopped_processes;
pub use self::nonresident::NonResident;
pub(crate) use self::options::BpfOptions;
pub(super) use self::plan::{Ability, FIRST_TYPE, Group, group};
pub(super) use self::program::RAW;
pub use self::scope::Scope;
pub use self::skipped::{NotFaultedIn, SkippedMethod};
pub use self::stopped::{STOPPED_VERB, guard_stopped};

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// Size of the batches of records that are passed on, bytes.
const BATCH: usize = 256 << 10;
/// Fill level of a ring, in 256ths, from which on the next pass begins without a pause.
const MUCH: u64 = 32;
/// Maximum fill level of each ring, in 256ths, at which stopped processes are continued.
const LITTLE: u64 = 64;
/// How long to wait at the end for running programs and their records. Programs that take longer wait for memory that another process must
/// provide.
const PATIENCE: Duration = Duration::from_secs(1);

/// Probes that are attached with programs. Dropping it detaches all of them.
#[derive(Debug)]
pub(crate) struct Bpf {
    /// If probes are attached to the recorded processes only: what attaches them to the processes that these start.
    children: Option<Children>,
    attachment: Attachment,
    tracked: Tracked,
    stopped: Option<Stopped>,
    control: Control,
    rings: CpuRings,
    groups: Vec<Group>,
    attrs: Vec<EventAttr>,
    /// Number of hits received, by sample id.
    received: Vec<u64>,
    /// Evidence about the strings of each sample id, `strings` each.
    habits: Vec<Habit>,
    /// How long the texts are, by sample id.
    lengths: Vec<TextLengths>,
    strings: usize,
    /// Index of the group of each sample id.
    owners: Vec<usize>,
    first_id: u64,
    /// How the callers are found; `None` if they are not recorded.
    graph: Option<CallGraph>,
    /// Number of records with unknown ids or sizes, which should be 0.
    strange: u64,
    /// A sample without its stack.
    sample: Vec<u8>,
    batch: Vec<u8>,
}

impl Bpf {
    /// Attaches all probes, disabled. Returns the sites that the kernel refuses, with the errors.
    pub(crate) fn open(
        probes: &[PlannedProbe],
        options: &BpfOptions<'_>,
    ) -> Result<(Self, Vec<RefusedProbe>), RecordError> {
        if !in_first_pid_namespace() {
            return Err(RecordError::NoBpf(BpfRefusal::PidNamespace));
        }
        let btf = Btf::read();
        let of_thread = |member| {
            let btf = btf.as_ref()?;
            btf.member("task_struct", &["thread", member])
        };
        let thread_base = of_thread("fsbase")
            .zip(of_thread("tls_array"))
            .map(|(fs, descriptors)| ThreadBase { fs, descriptors });
        let groups = plan::group(
            probes,
            options.strings,
            plan::Ability {
                thread: thread_base.is_some(),
                guesses: true,
            },
            options.graph,
        )?;
        let ids = groups.iter().map(|group| group.probe.sites.len()).sum();
        let setup = |object: BpfObject| {
            move |source: io::Error| RecordError::Kernel {
                operation: KernelOperation::BpfObject(object),
                source,
            }
        };
        let strings = groups.iter().map(|group| group.layout.strings().count());
        let strings = strings.max().unwrap_or(0);
        let control = Control::new(ids, strings).map_err(setup(BpfObject::Control))?;
        let sizes = Sizes {
            cpus: options.cpus,
            bytes: options.ring_bytes,
        };
        let rings = CpuRings::new(sizes).map_err(setup(BpfObject::Rings))?;
        let apart = attach::can_be_apart(options).then_some(&control);
        let mut tracked = Tracked::new(&options.filter, btf.as_ref(), apart)
            .map_err(setup(BpfObject::Follower))?;
        let stopped = options
            .lossless
            .then(|| Stopped::new(&control, options.planting))
            .transpose();
        let stopped = stopped.map_err(setup(BpfObject::StoppedProcesses))?;
        let common = Common {
            touch: Touch::new(options.nonresident, btf.as_ref()),
            cpus: options.some_cpus.then(|| ranges(options.cpus)),
            who: follow::who(&options.filter),
            first_id: options.first_id,
            ids: ids as u32,
            strings: strings as u32,
            stop: stopped.as_ref().map(|_| Stop {
                at: (rings.bytes() / 2) as u32,
            }),
            thread_base,
            graph: options.graph,
        };
        let maps = Maps {
            rings: rings.array(),
            control: control.as_fd(),
            tracked: tracked.as_fd(),
            can_hold: tracked.hold.is_some(),
            stopped: stopped.as_ref().map(AsFd::as_fd),
            spared: stopped.as_ref().map(Stopped::spared),
        };
        let sites = sites(&groups, options.first_id);
        let unknown = common.touch == Touch::Never && options.nonresident == NonResident::Auto;
        let attaching = Attaching {
            sites: &sites,
            common,
            maps,
            options,
        };
        let AttachedSites {
            mut attachment,
            bad,
        } = attaching.run()?;
        if unknown {
            attachment.not_faulted_in = Some(NotFaultedIn::NoBtf);
        }
        let children = match (tracked.hold.take(), attachment.later.take()) {
            (Some(hold), Some(later)) => {
                let children = Children::follow(hold, later, &control);
                Some(children.map_err(setup(BpfObject::Children))?)
            }
            (hold, _) => {
                tracked.hold = hold;
                None
            }
        };
        let mut bpf = Self {
            children,
            attachment,
            tracked,
            stopped,
            control,
            rings,
            received: vec![0; ids],
            habits: vec![Habit::default(); ids * strings],
            lengths: vec![TextLengths::default(); ids],
            strings,
            owners: sites.iter().map(|site| site.group).collect(),
            attrs: Vec::new(),
            groups,
            first_id: options.first_id,
            graph: options.graph,
            strange: 0,
            sample: Vec::new(),
            batch: Vec::new(),
        };
        bpf.attrs = bpf.attrs(options.metadata);
        let refused = bpf.without(bad);
        Ok((bpf, refused))
    }

    /// The attrs of all groups, for the trace.
    fn attrs(&self, metadata: &Attr) -> Vec<EventAttr> {
        let ids = |group: usize| {
            (self.first_id..)
                .zip(&self.owners)
                .filter(move |(_, owner)| **owner == group)
                .map(|(id, _)| id)
                .collect()
        };
        let groups = self.groups.iter().enumerate();
        groups
            .map(|(index, group)| {
                let mut attr = Attr {
                    kind: TRACEPOINT,
                    config: group.layout.id.into(),
                    sample_period: 1,
                    sample_type: metadata.sample_type | SampleType::RAW,
                    sample_regs_user: 0,
                    sample_stack_user: 0,
                    ..metadata.clone()
                };
                if let Some(graph) = self.graph {
                    graph.sample(group.arch(), &mut attr);
                }
                EventAttr {
                    attr,
                    name: group.probe.event(),
                    ids: ids(index),
                }
            })
            .collect()
    }

    /// The sites that were not attached to, as probes with the errors. They stay among the definitions, without hits.
    fn without(&self, bad: Vec<BadSite>) -> Vec<RefusedProbe> {
        let named = bad.into_iter().filter_map(|BadSite { site, error }| {
            let group = self.groups.get(*self.owners.get(site)?)?;
            Some(RefusedProbe {
                probe: group.probe.clone(),
                error,
            })
        });
        named.collect()
    }

    /// The ids of each site and the attr of each group, for the trace. Taken once.
    pub(crate) fn take_planted(&mut self) -> impl Iterator<Item = (Vec<Vec<u64>>, EventAttr)> {
        std::mem::take(&mut self.attrs).into_iter().map(|event| {
            let site_ids = event.ids.iter().map(|id| vec![*id]).collect();
            (site_ids, event)
        })
    }

    /// The probes, each with its layout.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &PlannedProbe> {
        self.groups.iter().map(|group| &group.probe)
    }

    /// The formats of their samples, for stock perf.
    pub(crate) fn formats(&self) -> Vec<TracepointFormat> {
        self.groups.iter().map(Group::format).collect()
    }

    /// The attach method.
    pub(crate) fn attach_method(&self) -> AttachMethod {
        self.attachment.attach_method
    }

    /// Number of loaded programs.
    pub(crate) fn programs(&self) -> usize {
        self.attachment.programs()
    }

    /// Number of links or events that are open in the kernel.
    pub(crate) fn links(&self) -> usize {
        self.attachment.links() + self.children.as_ref().map_or(0, Children::links)
    }

    /// Whether memory that is not resident is brought in.
    pub(crate) fn nonresident(&self) -> NonResident {
        match self.attachment.touch {
            Touch::Never => NonResident::Never,
            Touch::Always => NonResident::Always,
            Touch::Look(_) => NonResident::Auto,
        }
    }

    /// Why memory that is not resident is not brought in although this was requested.
    pub(crate) const fn not_faulted_in(&self) -> Option<&NotFaultedIn> {
        self.attachment.not_faulted_in.as_ref()
    }

    /// The attach methods that were tried before the one in use, and why they do not work.
    pub(crate) fn skipped(&self) -> &[SkippedMethod] {
        &self.attachment.skipped
    }

    /// Size of each ring, bytes.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.rings.bytes()
    }

    /// The largest share of a ring that is taken, 0 to 1.
    pub(crate) fn fullest_ring(&self) -> f64 {
        self.rings.fullest() as f64 / 256.0
    }

    /// Enables the programs.
    pub(crate) fn enable(&self) {
        self.control.set_looked();
        self.control.set_enabled(true);
    }

    /// Disables the programs, and continues stopped processes.
    pub(crate) fn disable(&mut self) {
        self.control.set_enabled(false);
        self.let_go();
    }

    /// Continues all stopped processes.
    fn let_go(&self) {
        if let Some(stopped) = &self.stopped {
            stopped.let_go();
        }
    }

    /// The processes that the sites are attached to.
    pub(crate) fn scope(&self) -> Scope<'_> {
        match (
            &self.children,
            &self.attachment.processes,
            &self.tracked.not_held,
        ) {
            (Some(children), ..) => match children.reason() {
                None => Scope::RecordedAndChildren,
                Some(reason) => Scope::AllAfterAll(reason),
            },
            (None, Some(_), _) => Scope::Recorded,
            (None, None, Some(error)) => Scope::AllWithoutHold(error),
            (None, None, None) => Scope::All,
        }
    }

    /// Whether the sites are attached to the named processes and to those that these start only.
    pub(crate) fn is_apart(&self) -> bool {
        let children = self.children.as_ref();
        children.is_some_and(|children| children.reason().is_none())
    }

    /// Why the sites were attached to all processes of the files after all; `None` if they were not.
    pub(crate) fn planted_everywhere(&self) -> Option<EverywhereReason> {
        self.children.as_ref()?.reason()
    }

    /// Number of processes that may have run before they had probes.
    pub(crate) fn missed(&self) -> u64 {
        self.control.missed() + self.children.as_ref().map_or(0, Children::failed)
    }

    /// Takes the descriptors that keep the probes attached.
    pub(crate) fn take_descriptors(&mut self) -> Descriptors {
        let mut descriptors = self.attachment.take_descriptors();
        if let Some(children) = &mut self.children {
            descriptors.links.append(&mut children.end());
        }
        descriptors
    }

    /// The descriptor that becomes readable when a ring has records.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }

    /// Passes complete records to `sink`. Returns whether many more have been written meanwhile.
    pub(crate) fn drain(&mut self, mut sink: impl FnMut(&[u8])) -> bool {
        self.pass(&mut sink) == Left::More && self.rings.fullest() >= MUCH
    }

    /// Passes all records to `sink`, including those that are still being written: waits until `release` reports that no program runs any
    /// more, but not for long. Returns the number of records that were not complete in time.
    pub(crate) fn drain_last(
        &mut self,
        mut release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]),
    ) -> u64 {
        let begin = Instant::now();
        loop {
            let none_runs = match &mut release {
                Some(release) => release.wait(Duration::from_millis(1)),
                // A program that was running when the programs were disabled writes its record within microseconds.
                None => {
                    std::thread::sleep(Duration::from_millis(2));
                    true
                }
            };
            // A program that was running when the programs were disabled may have stopped its process since.
            self.let_go();
            match self.pass(&mut sink) {
                Left::More => {}
                Left::Nothing if none_runs || begin.elapsed() >= PATIENCE => return 0,
                Left::Busy if begin.elapsed() >= PATIENCE => break,
                Left::Busy | Left::Nothing => {}
            }
        }
        let mut unfinished = 0;
        loop {
            let busy = self.rings.pass_over_busy();
            if busy == 0 {
                return unfinished;
            }
            unfinished += busy;
            while self.pass(&mut sink) == Left::More {}
        }
    }

    /// How often processes were not stopped although the ring was full, because it was not drained for long.
    pub(crate) fn suspensions(&self) -> u64 {
        self.control.suspensions()
    }

    /// Lost hits that a filter could not judge, because the memory that it reads was not resident.
    pub(crate) fn unjudged(&self) -> u64 {
        self.control.unjudged()
    }

    fn pass(&mut self, sink: &mut impl FnMut(&[u8])) -> Left {
        self.control.set_looked();
        let Self {
            rings,
            groups,
            received,
            habits,
            lengths,
            strings,
            first_id,
            graph,
            strange,
            sample,
            batch,
            control,
            ..
        } = self;
        let left = rings.drain(|record| {
            let mut taker = Taker {
                groups,
                received,
                habits,
                lengths,
                control,
                strings: *strings,
                first_id: *first_id,
                graph: *graph,
                sample,
            };
            if !taker.take(record, batch) {
                *strange += 1;
            }
            if batch.len() >= BATCH {
                sink(batch);
                batch.clear();
            }
        });
        if !batch.is_empty() {
            sink(batch);
            batch.clear();
        }
        // After a record that is still being written a ring may be full as before.
        if self.rings.fullest() < LITTLE {
            self.let_go();
        }
        left
    }

    /// The count of each sample id.
    pub(crate) fn counts(&self) -> impl Iterator<Item = IdCount> {
        let ids = (self.first_id..).zip(&self.owners).zip(&self.received);
        ids.enumerate().map(|(index, ((id, owner), received))| {
            let lost = self.control.lost(index);
            let count = Count {
                hits: received + lost,
                lost: Some(lost),
            };
            IdCount {
                probe: *owner,
                id,
                count,
            }
        })
    }
}

/// The state of converting records.
struct Taker<'a> {
    groups: &'a [Group],
    received: &'a mut [u64],
    habits: &'a mut [Habit],
    lengths: &'a mut [TextLengths],
    control: &'a Control,
    strings: usize,
    first_id: u64,
    graph: Option<CallGraph>,
    sample: &'a mut Vec<u8>,
}

impl Taker<'_> {
    /// Appends a record of the ring in the form of the trace, and counts it.
    fn take(&mut self, record: &[u8], batch: &mut Vec<u8>) -> bool {
        let (Some(id), Some(kind)) = (
            record.get(8..).and_then(<[u8]>::first_chunk::<8>),
            record
                .get(program::RAW..)
                .and_then(<[u8]>::first_chunk::<2>),
        ) else {
            return false;
        };
        let index = u64::from_ne_bytes(*id).wrapping_sub(self.first_id) as usize;
        let group = u16::from_ne_bytes(*kind).wrapping_sub(FIRST_TYPE);
        let (Some(count), Some(group)) = (
            self.received.get_mut(index),
            self.groups.get(usize::from(group)),
        ) else {
            return false;
        };
        let habits = self.habits.get_mut(index * self.strings..);
        let habits = habits.unwrap_or_default();
        if let Some(graph) = self.graph {
            if !put_with_stack(record, group, graph, habits, self.sample, batch) {
                return false;
            }
        } else if group.layout.string_limit == 0 {
            batch.extend_from_slice(record);
        } else if !compact::compact(record, &group.layout, group.rooms, habits, batch) {
            return false;
        }
        *count += 1;
        if let Some(is_long) = compact::is_long(record, &group.layout, group.rooms)
            && let Some(are_long) = self.lengths[index].count(is_long)
        {
            let first = control::long_texts_at(self.received.len() as u32, self.strings as u32);
            self.control
                .set_long_texts(first + 8 * index as u32, are_long);
        }
        true
    }
}

/// Appends a record of the ring that has the callers, or what they are found from. `sample` is for the sample without it.
fn put_with_stack(
    record: &[u8],
    group: &Group,
    graph: CallGraph,
    habits: &mut [Habit],
    sample: &mut Vec<u8>,
    batch: &mut Vec<u8>,
) -> bool {
    sample.clear();
    let end = record.len().checked_sub(group.rooms.stack);
    let end = end.and_then(|end| record.get(end..)).unwrap_or_default();
    compact::compact(record, &group.layout, group.rooms, habits, sample)
        && with_stack::put(sample, end, graph, group.arch(), batch).is_some()
}

/// All sites with their cookies.
fn sites(groups: &[Group], first_id: u64) -> Vec<Site<'_>> {
    let of_group = groups.iter().enumerate().flat_map(|(index, group)| {
        let sites = group.probe.sites.iter().zip(&group.plans);
        sites.map(move |(site, plan)| (index, group, site, plan))
    });
    of_group
        .zip(first_id..)
        .map(|((index, group, site, plan), id)| Site {
            group: index,
            probe: &group.probe,
            site: &site.site,
            captures: &plan.captures,
            layout: &group.layout,
            arch: group.arch(),
            condition: plan.condition.as_ref(),
            cookie: u64::from(group.layout.id) << program::ID_BITS | id,
        })
        .collect()
}

/// CPU numbers, sorted, as ranges of first and last.
fn ranges(cpus: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    ranges
}

/// Whether this process is in the initial pid namespace, whose process ids programs see.
fn in_first_pid_namespace() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == FIRST)
}
