//! Records of all processes of the host, each of which wakes its reader at once: FORK, EXIT, names at `execve(2)`, executable mappings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_buildid_cache::DeviceNumber;
use usdtrec_format::perf::{
    MmapFile, ProcessChange, ProcessChangeKind, RawRecord, RecordType, Records, SampleType,
};
use usdtrec_kernel::KernelError;
use usdtrec_kernel::host::identity::MapIdentity;

use super::event::{Event, KernelAttr, Mode};
use super::refusal::refusal;
use super::ring::Ring;
use crate::error::RecordError;

/// Size of the ring of each CPU, bytes.
const RING: usize = 128 << 10;

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
        file: MapIdentity,
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
        let attr = KernelAttr::prompt_metadata(mode);
        let page = rustix::param::page_size();
        let bytes = RING.max(page);
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
            let file = MapIdentity { device, inode };
            ProcessEvent::Code { pid, file }
        }
        _ => return None,
    };
    let time = change.time;
    Some(TimedEvent { time, event })
}
