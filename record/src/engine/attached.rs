//! What is open in the kernel: the events of process records; and the probes, attached with programs (the bpf engine) or with one perf
//! event for each site, traced thread and CPU (the perf engine).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use usdtrec_format::perf::EventAttr;

use super::bpf::{AttachMethod, Bpf, StackUse, TextFinding};
use super::event::{Event, Mode, Place};
use super::group::Group;
use super::guard_process::GuardDeath;
use super::inexact::InexactCounts;
use super::pmu::UprobePmu;
use super::processes::Processes;
use super::release::{Descriptors, Release};
use super::rings::Rings;
use crate::error::RecordError;
use crate::probe::{PlannedProbe, RefusedProbe};

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
    pub(super) rings: Option<Rings>,
    /// The probes that are attached.
    pub(crate) probes: Vec<PlannedProbe>,
    /// Their events, in the same order.
    pub(crate) planted: Vec<Planted>,
    /// The attach method.
    pub(super) way: Way,
    /// The planned probes that the kernel refused.
    pub(crate) refused: Vec<RefusedProbe>,
    /// Error of the bpf engine, if it was tried first.
    pub(crate) passed_over: Option<RecordError>,
    /// Why hits may be missing or duplicated without being counted as lost; `None` if counts are exact.
    pub(crate) inexact: Option<InexactCounts>,
    /// The uprobe PMU.
    pub(crate) pmu: UprobePmu,
    /// Size of each ring for samples, bytes.
    pub(crate) ring_bytes: usize,
    /// Size that they should have, bytes. They are smaller if the kernel has no memory.
    pub(crate) wanted_ring_bytes: usize,
    /// Settings of the probes' perf events.
    pub(super) mode: Mode,
    /// Whether all threads are recorded, by an event for each CPU. Events of single threads follow these to any CPU.
    pub(super) watches_cpus: bool,
}

impl Attached {
    /// Whether mappings without code have records, too.
    pub(crate) const fn maps_data(&self) -> bool {
        self.mode.maps_data
    }

    /// All events of probes.
    pub(super) fn site_events(&self) -> impl Iterator<Item = &Event> {
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

    /// Starts another guard if it was killed. Returns that it was.
    pub(crate) fn replace_guard(&mut self) -> Option<GuardDeath> {
        match &mut self.way {
            Way::Pmu => None,
            Way::Tracefs(group) => group.replace_guard(),
            Way::Bpf(bpf) => bpf.replace_guard(),
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

    /// Disables everything; the rings keep their records. Continues processes that were stopped.
    pub(crate) fn disable(&mut self) -> io::Result<()> {
        if let Way::Bpf(bpf) = &mut self.way {
            bpf.disable();
        }
        self.site_events().try_for_each(Event::disable)?;
        self.processes.disable()
    }

    /// Takes what the stacks of sample ids have needed, for the size of the next ones.
    pub(crate) fn learn_stacks(&mut self, used: impl Iterator<Item = (u64, StackUse)>) {
        if let Way::Bpf(bpf) = &mut self.way {
            bpf.learn_stacks(used);
        }
    }

    /// Whether texts that arguments point to may be missing in samples.
    pub(crate) const fn may_lack_texts(&self) -> bool {
        match &self.way {
            Way::Bpf(bpf) => bpf.lacks_texts(),
            _ => true,
        }
    }

    /// Takes what hits have shown of arguments since the last time, for readers.
    pub(crate) fn take_texts(&mut self) -> Vec<TextFinding> {
        match &mut self.way {
            Way::Bpf(bpf) => bpf.take_texts(),
            _ => Vec::new(),
        }
    }

    /// Another file begins, whose readers have to be told all that holds.
    pub(crate) fn repeat_texts(&mut self) {
        if let Way::Bpf(bpf) = &mut self.way {
            bpf.repeat_texts();
        }
    }

    /// One pass over all rings: samples first, so that earlier process records are in the same pass. Returns whether it left many records
    /// in the rings of programs.
    /// `changes` gets a copy of the process records. `sink` returns what the stacks that it was given have needed.
    pub(crate) fn drain(
        &mut self,
        mut sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>,
        changes: Option<&mut Vec<u8>>,
    ) -> bool {
        let left = match &mut self.way {
            Way::Bpf(bpf) => bpf.drain(&mut sink),
            _ => false,
        };
        if let Some(rings) = &mut self.rings {
            rings.drain(|records| drop(sink(records)));
        }
        self.drain_processes(|records| drop(sink(records)), changes);
        left
    }

    /// One pass over the rings of process records, of which `changes` gets a copy.
    pub(crate) fn drain_processes(
        &mut self,
        mut sink: impl FnMut(&[u8]),
        mut changes: Option<&mut Vec<u8>>,
    ) {
        self.processes.drain(&mut |records: &[u8]| {
            if let Some(changes) = &mut changes {
                changes.extend_from_slice(records);
            }
            sink(records);
        });
    }

    /// The last pass, after [`disable`](Self::disable).
    /// With `release`, waits until the last program has ended, which it reports, but not longer than programs usually run. Returns the
    /// number of hits that are missing because their programs had not ended.
    pub(crate) fn drain_last(
        &mut self,
        release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]),
    ) -> u64 {
        let mut sink = |records: &[u8]| {
            sink(records);
            Vec::new()
        };
        let mut unfinished = 0;
        if let Way::Bpf(bpf) = &mut self.way {
            unfinished = bpf.drain_last(release, &mut sink);
        }
        self.drain(sink, None);
        unfinished
    }

    /// The descriptor of the rings of the programs, with programs. It becomes readable with the first record.
    pub(crate) fn program_rings(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::Bpf(bpf) => Some(bpf.descriptor()),
            _ => None,
        }
    }

    /// The largest share of a ring of the programs that is taken, 0 to 1.
    pub(crate) fn fullest_ring(&self) -> f64 {
        match &self.way {
            Way::Bpf(bpf) => bpf.fullest_ring(),
            _ => 0.0,
        }
    }

    /// Descriptors that become readable when the ring of a CPU has many records.
    pub(crate) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let samples = self.rings.iter().flat_map(Rings::readable);
        samples.chain(self.processes.readable())
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
