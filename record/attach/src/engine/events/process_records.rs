//! Process records while recording: COMM, FORK, EXIT and MMAP2.
//!
//! They have their own rings, so that a flood of samples cannot displace them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_format::perf::EventAttr;

use super::super::perf_target::PerfTarget;
use super::event::{Event, KernelAttr, Mode};
use super::refusal::{has_ended, refusal};
use super::rings::Rings;
use crate::error::RecordError;
use crate::error::TargetError;

/// Size of the ring of each CPU if memory allows it, bytes.
const RING: usize = 256 << 10;

/// The events of process records, and their rings.
#[derive(Debug)]
pub struct Processes {
    mode: Mode,
    rings: Rings,
    /// The events of each thread, one for each CPU.
    events: Vec<Vec<Event>>,
    /// Events of CPUs that came on line later.
    later: Vec<Event>,
    /// Attr of the events.
    pub attr: EventAttr,
    /// Whether all threads are recorded, by an event for each CPU.
    watches_cpus: bool,
}

impl Processes {
    /// Opens the events, disabled.
    pub fn open(mode: Mode, perf_target: &PerfTarget) -> Result<Self, RecordError> {
        let rings = Rings::map(mode, &perf_target.cpus, Some(RING))
            .or_else(|_| Rings::map(mode, &perf_target.cpus, None))?;
        let attr = KernelAttr::metadata(mode);
        let mut events = Vec::new();
        for &tid in &perf_target.tids {
            events.extend(open_thread(&attr, tid, perf_target, &rings)?);
        }
        if events.is_empty() {
            return Err(TargetError::AllEnded.into());
        }
        let ids = events
            .iter()
            .flatten()
            .map(|event| event.id)
            .chain(rings.ids())
            .collect();
        // perf's name for an event without samples that provides process records, for user space only.
        let attr = EventAttr {
            attr: attr.for_trace(0),
            name: "dummy:u".to_owned(),
            ids,
        };
        Ok(Self {
            mode,
            rings,
            events,
            later: Vec::new(),
            attr,
            watches_cpus: perf_target.tids == [-1],
        })
    }

    /// Whether mappings without code have records, too.
    pub const fn maps_data(&self) -> bool {
        self.mode.maps_data
    }

    /// Whether all threads are recorded, by an event for each CPU.
    pub(in crate::engine) const fn watches_cpus(&self) -> bool {
        self.watches_cpus
    }

    /// Opens events on a CPU that has come on line.
    pub fn follow_to(&mut self, cpu: u32) -> Result<(), RecordError> {
        let Some(known) = self.events.iter().flatten().map(|event| event.id).next() else {
            return Ok(());
        };
        self.rings.add(cpu)?;
        let mut event = Event::open(&KernelAttr::metadata(self.mode), -1, cpu).map_err(refusal)?;
        self.rings.redirect_as(&mut event, known).map_err(refusal)?;
        event.enable().map_err(refusal)?;
        self.later.push(event);
        Ok(())
    }

    /// Enables the events.
    pub fn enable(&self) -> io::Result<()> {
        self.events.iter().flatten().try_for_each(Event::enable)
    }

    /// Disables the events.
    pub fn disable(&self) -> io::Result<()> {
        let mut events = self.events.iter().flatten().chain(&self.later);
        events.try_for_each(Event::disable)
    }

    /// Descriptors that become readable when a ring has many records.
    pub fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.readable()
    }

    /// A descriptor for each thread, which reports POLLHUP when the thread and all that it started have ended.
    pub fn hangups(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.events
            .iter()
            .flat_map(|events| events.first())
            .map(AsFd::as_fd)
    }

    /// Passes all complete records to `sink`, as the kernel has written them.
    pub fn drain(&mut self, sink: impl FnMut(&[u8])) {
        self.rings.drain(sink);
    }
}

/// The events of one thread; `None` if it has ended.
fn open_thread(
    attr: &KernelAttr<'_>,
    tid: i32,
    perf_target: &PerfTarget,
    rings: &Rings,
) -> Result<Option<Vec<Event>>, RecordError> {
    let mut events = Vec::new();
    for (&cpu, owner) in perf_target.cpus.iter().zip(rings.owners()) {
        match Event::open(attr, tid, cpu) {
            Ok(event) => {
                event.redirect(owner).map_err(refusal)?;
                events.push(event);
            }
            Err(error) if has_ended(&error) => return Ok(None),
            Err(error) => return Err(refusal(error)),
        }
    }
    Ok(Some(events))
}
