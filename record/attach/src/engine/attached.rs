//! What is open in the kernel: the events of process records, and the probes, attached by an engine.
//!
//! Adding probes to a recording that runs: those of files that processes map later.
//!
//! Planning, loading programs and attaching take milliseconds, in which the rings must be drained. So a [`PartPlanter`] is used by another
//! thread. What it has attached, a [`LatePart`], records nothing until the loop of the recording has added it to [`Attached`] and to what else
//! knows the probes, and has enabled it.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use usdtrec_format::perf::EventAttr;
use usdtrec_kernel::KernelError;

use super::bpf::{LatePart, LateSettings, PartPlanter, WaitEvent};
use super::dispatch::Engine;
use super::events::event::UprobePmu;
use super::events::process_events::Processes;
use super::outcome::{Opened, ProbeAttr};
use crate::error::RecordError;
use crate::select::probe::{PlannedProbe, RefusedProbe};

/// Everything that is open in the kernel. Dropping it closes all of it, the probes first.
#[derive(Debug)]
pub struct Attached {
    /// The engine, with what it has attached.
    pub engine: Engine,
    /// The events of process records.
    pub processes: Processes,
    /// The probes that are attached, those that were added later at the end.
    pub probes: Vec<Arc<PlannedProbe>>,
    /// Their attrs, in the same order.
    pub attrs: Vec<ProbeAttr>,
    /// Number of those that the recording began with.
    first_probes: usize,
    /// The event of the waits of threads; `None` if they have no events.
    pub waits: Option<WaitEvent>,
    /// The planned probes that the kernel refused.
    pub refused: Vec<RefusedProbe>,
    /// Error of the bpf engine, if it was tried first.
    pub passed_over: Option<RecordError>,
    /// The uprobe PMU.
    pub pmu: UprobePmu,
}

impl Attached {
    pub(super) fn new(opened: Opened<Engine>, processes: Processes, pmu: UprobePmu) -> Self {
        let Opened {
            engine,
            probes,
            attrs,
            refused,
        } = opened;
        Self {
            first_probes: probes.len(),
            engine,
            processes,
            probes,
            attrs,
            waits: None,
            refused,
            passed_over: None,
            pmu,
        }
    }

    /// The events of the trace in their order: those of the probes that the recording began with, that of process records, that of waits, those of probes that
    /// were added later. `probes` are those of all probes.
    pub fn in_order_of_trace(&self, probes: impl IntoIterator<Item = EventAttr>) -> Vec<EventAttr> {
        let mut probes = probes.into_iter();
        let mut all: Vec<EventAttr> = probes.by_ref().take(self.first_probes).collect();
        all.push(self.processes.attr.clone());
        all.extend(self.waits.iter().map(|waits| waits.event.clone()));
        all.extend(probes);
        all
    }

    /// The index of a probe's event in the trace.
    pub const fn event_index(&self, probe: usize) -> usize {
        if probe < self.first_probes {
            probe
        } else {
            probe + 1 + self.waits.is_some() as usize
        }
    }

    /// Disables everything; the rings keep their records.
    pub fn disable(&mut self) -> io::Result<()> {
        self.engine.disable()?;
        self.processes.disable()
    }

    /// Descriptors that become readable when the ring of a CPU has many records.
    pub fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.engine.event_rings().chain(self.processes.readable())
    }

    /// Records on CPUs that have come on line, if all threads are recorded. Hits of events that cannot be opened are missing, like earlier
    /// hits on those CPUs.
    ///
    /// A uevent of the kernel reports them. With `-a` events are opened there at once: an event of all threads cannot be opened on a CPU
    /// that is off line, and one on a CPU that went off line stops counting. Hits before that are missing, and this is reported. Events of
    /// single threads follow these to any CPU that was on line at first; they are not opened on later CPUs: children have inherited copies
    /// of them, which the recorder cannot reach.
    pub fn follow_to(&mut self, cpus: &[u32]) {
        if !self.processes.watches_cpus() {
            return;
        }
        for &cpu in cpus {
            let _ = self.processes.follow_to(cpu);
            let _ = self.engine.follow_to(cpu, &self.probes);
        }
    }
}

/// Probes that were added to a recording.
#[derive(Debug)]
pub struct AddedProbes {
    /// Their indexes in [`Attached::probes`] and [`Attached::attrs`].
    pub probes: Range<usize>,
    /// The planned probes that the kernel refused.
    pub refused: Vec<RefusedProbe>,
    /// Whether they are attached to all processes of their files, although only some are recorded.
    pub is_everywhere: bool,
}

impl Attached {
    /// What attaches further probes; there must be one only, because it numbers them.
    ///
    /// # Errors
    /// [`RecordError::NotFollowed`] with the perf engine; [`KernelError::Host`].
    pub fn late_planter(&self, settings: LateSettings) -> Result<PartPlanter, RecordError> {
        let Engine::Bpf(bpf) = &self.engine else {
            return Err(RecordError::NotFollowed);
        };
        let planter = bpf.late_planter(settings, &self.processes.attr.attr);
        Ok(planter.map_err(KernelError::host("descriptors of maps"))?)
    }

    /// Removes what was added since there were so many probes, before it was enabled.
    pub fn take_back(&mut self, before: usize) {
        if let Engine::Bpf(bpf) = &mut self.engine {
            bpf.take_back(before);
        }
        self.probes.truncate(before);
        self.attrs.truncate(before);
    }

    /// Takes attached probes, which stay disabled until [`Engine::enable`].
    pub fn add(&mut self, part: LatePart) -> AddedProbes {
        let LatePart {
            opened,
            is_everywhere,
        } = part;
        let Opened {
            engine: part,
            probes,
            attrs,
            refused,
        } = opened;
        let before = self.probes.len();
        match &mut self.engine {
            Engine::Bpf(bpf) => bpf.add(part, before),
            // It has no planter.
            Engine::Perf(_) => drop(part),
        }
        self.probes.extend(probes);
        self.attrs.extend(attrs);
        AddedProbes {
            probes: before..self.probes.len(),
            refused,
            is_everywhere,
        }
    }
}
