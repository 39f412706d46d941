//! Records of all processes of the host, each of which wakes its reader at once: FORK, EXIT, names at `execve(2)`, executable mappings.
//!
//! Process records while recording: COMM, FORK, EXIT and MMAP2.
//!
//! They have their own rings, so that a flood of samples cannot displace them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_buildid_cache::{DeviceNumber, MappedInode};
use usdtrec_format::perf::{
    EventAttr, MmapFile, ProcessChange, ProcessChangeKind, RawRecord, RecordType, Records,
    SampleType,
};
use usdtrec_kernel::KernelError;

use super::super::options::PerfTarget;
use super::event::{Event, KernelAttr, Mode, has_ended, refusal};
use super::rings::{Ring, Rings};
use crate::error::{RecordError, TargetError};

/// Size of the ring of each CPU, bytes.
const EVENTS_RING: usize = 128 << 10;

/// What happened in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A process started another one.
    Fork {
        /// The process that started it.
        parent: u32,
        /// The new process.
        child: u32,
    },
    /// A process executed a program: its former memory is gone.
    Exec {
        /// The process.
        pid: u32,
    },
    /// A process mapped code of a file.
    Code {
        /// The process.
        pid: u32,
        /// The file.
        file: MappedInode,
    },
    /// The first thread of a process ended.
    Exit {
        /// The process.
        pid: u32,
    },
    /// Records are missing.
    Lost,
}

/// An event, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedEvent {
    /// ns of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// What happened.
    pub event: ProcessEvent,
}

/// One event for each CPU, with a ring of its own.
#[derive(Debug)]
pub struct ProcessEvents {
    rings: Vec<Ring>,
    id_type: SampleType,
}

impl ProcessEvents {
    /// Opens and enables the events.
    pub fn open(cpus: &[u32]) -> Result<Self, RecordError> {
        let mode = Mode {
            inherit: false,
            enable_on_exec: false,
            maps_data: false,
            is_prompt: true,
            graph: None,
            counts_losses: false,
        };
        let attr = KernelAttr::metadata(mode).waking_at(1);
        let page = rustix::param::page_size();
        let bytes = EVENTS_RING.max(page);
        let ring = |cpu: &u32| {
            let event = Event::open(&attr, -1, *cpu).map_err(refusal)?;
            let ring = Ring::map(event, bytes, page);
            let ring = ring.map_err(|source| KernelError::Ring { bytes, source })?;
            ring.owner().enable().map_err(refusal)?;
            Ok(ring)
        };
        Ok(Self {
            rings: cpus.iter().map(ring).collect::<Result<_, RecordError>>()?,
            id_type: attr.for_trace(0).id_type(),
        })
    }

    /// The descriptors that become readable with the next record.
    pub fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.owner().as_fd())
    }

    /// Disables the events; the rings keep their records.
    pub fn disable(&self) -> io::Result<()> {
        self.rings
            .iter()
            .try_for_each(|ring| ring.owner().disable())
    }

    /// Takes all records, in the order of time. The rings are read twice: what led to a record of one CPU may have been written to the ring
    /// of another one after that was read, but before the record.
    pub fn take(&mut self, events: &mut Vec<TimedEvent>) {
        let id_type = self.id_type;
        for _ in 0..2 {
            for ring in &mut self.rings {
                ring.drain(|records| {
                    events
                        .extend(Records::new(records).filter_map(|record| parse(&record, id_type)));
                });
            }
        }
        events.sort_by_key(|event| event.time);
    }
}

fn parse(record: &RawRecord<'_>, id_type: SampleType) -> Option<TimedEvent> {
    if record.kind == RecordType::LOST {
        let event = ProcessEvent::Lost;
        return Some(TimedEvent { time: 0, event });
    }
    let number = |pid: i32| u32::try_from(pid).ok().filter(|pid| *pid != 0);
    let change = ProcessChange::parse_in_ring(record, id_type)?;
    let pid = number(change.pid)?;
    let event = match change.kind {
        ProcessChangeKind::ProcessBegan { parent_pid, .. } => ProcessEvent::Fork {
            parent: number(parent_pid)?,
            child: pid,
        },
        ProcessChangeKind::ThreadEnded { .. } if change.tid == change.pid => {
            ProcessEvent::Exit { pid }
        }
        ProcessChangeKind::Named { executes: true, .. } => ProcessEvent::Exec { pid },
        ProcessChangeKind::Mapped(map) => {
            let MmapFile::Inode {
                major,
                minor,
                inode,
                ..
            } = map.file
            else {
                return None;
            };
            let device = DeviceNumber { major, minor };
            let file = MappedInode { device, inode };
            ProcessEvent::Code { pid, file }
        }
        _ => return None,
    };
    let time = change.time;
    Some(TimedEvent { time, event })
}

/// Size of the ring of each CPU if memory allows it, bytes.
const RECORDS_RING: usize = 256 << 10;

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
        let rings = Rings::map(mode, &perf_target.cpus, Some(RECORDS_RING))
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
