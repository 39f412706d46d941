//! Process records while recording: COMM, FORK, EXIT and MMAP2.
//!
//! They have their own rings, so that a flood of samples cannot displace them, and get the build-ids of mapped files here. The kernel can
//! write the build-ids (`attr.build_id`, Linux 5.12), but then it also sets the flag "this record has a build-id" in the copies for other
//! tracers' events, which have no build-id: files that stock `perf record` wrote at the same time could not be read (seen on Linux 6.18,
//! `perf_event_mmap_output`).
//!
//! For the same reason the recorder ignores that flag in its own records: stock perf crashes on records that have the
//! flag and no build-id.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_buildid_cache::MappedInode;
use usdtrec_format::perf::{
    Comm, EventAttr, Lost, Mmap, MmapFile, RawRecord, RecordType, Records, SampleType,
};

use super::super::perf_target::PerfTarget;
use super::event::{Event, KernelAttr, Mode};
use super::refusal::{has_ended, refusal};
use super::rings::Rings;
use crate::error::RecordError;
use crate::error::TargetError;
use crate::recording::build_ids::{BuildIds, NewFiles};
use crate::recording::mapped_file_id::MappedFileId;
use crate::recording::sought_files::SoughtFiles;
use crate::recording::unread_files::UnreadCounts;

/// Size of the ring of each CPU if memory allows it, bytes.
const RING: usize = 256 << 10;

/// The events of process records, and their rings.
#[derive(Debug)]
pub(crate) struct Processes {
    mode: Mode,
    rings: Rings,
    /// The events of each thread, one for each CPU.
    events: Vec<Vec<Event>>,
    /// Events of CPUs that came on line later.
    later: Vec<Event>,
    /// Attr of the events.
    pub(crate) attr: EventAttr,
    /// Whether all threads are recorded, by an event for each CPU.
    watches_cpus: bool,
    build_ids: BuildIds,
    filled: Vec<u8>,
}

impl Processes {
    /// Opens the events, disabled.
    pub(crate) fn open(mode: Mode, perf_target: &PerfTarget) -> Result<Self, RecordError> {
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
            build_ids: BuildIds::default(),
            filled: Vec::new(),
        })
    }

    /// Whether mappings without code have records, too.
    pub(crate) const fn maps_data(&self) -> bool {
        self.mode.maps_data
    }

    /// Whether all threads are recorded, by an event for each CPU.
    pub(in crate::engine) const fn watches_cpus(&self) -> bool {
        self.watches_cpus
    }

    /// Opens events on a CPU that has come on line.
    pub(crate) fn follow_to(&mut self, cpu: u32) -> Result<(), RecordError> {
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
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.events.iter().flatten().try_for_each(Event::enable)
    }

    /// Disables the events.
    pub(crate) fn disable(&self) -> io::Result<()> {
        let mut events = self.events.iter().flatten().chain(&self.later);
        events.try_for_each(Event::disable)
    }

    /// Descriptors that become readable when a ring has many records.
    pub(crate) fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.readable()
    }

    /// A descriptor for each thread, which reports POLLHUP when the thread and all that it started have ended.
    pub(crate) fn hangups(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.events
            .iter()
            .flat_map(|events| events.first())
            .map(AsFd::as_fd)
    }

    /// The ELF files that processes mapped for the first time since the last call.
    pub(crate) fn take_new_files(&mut self) -> NewFiles {
        self.build_ids.take_new()
    }

    /// Opens no file any more that processes map; others than the known ones count as not read.
    pub(crate) fn read_no_more(&mut self, known: HashSet<MappedInode>) {
        self.build_ids.read_no_more(known);
    }

    /// Forgets files that were left out.
    pub(crate) fn forget_files(&mut self, files: Vec<MappedFileId>) {
        self.build_ids.forget(files);
    }

    /// Says of which files hits may be missing if they cannot be read.
    pub(crate) fn seek(&mut self, files: SoughtFiles) {
        self.build_ids.seek(files);
    }

    /// Number of process records that were lost.
    pub(crate) fn lost_records(&self) -> u64 {
        self.build_ids.lost_records()
    }

    /// The files that were opened.
    pub(crate) fn known_inodes(&self) -> HashSet<MappedInode> {
        self.build_ids.known_inodes()
    }

    /// What could not be read of the files that processes mapped.
    pub(crate) fn unread_files(&self) -> UnreadCounts {
        self.build_ids.unread()
    }

    /// Passes all complete records to `sink`.
    pub(crate) fn drain(&mut self, sink: &mut impl FnMut(&[u8])) {
        let Self {
            rings,
            attr,
            build_ids,
            filled,
            ..
        } = self;
        let sample_type = attr.attr.id_type();
        filled.clear();
        rings.drain(|records| {
            for record in Records::new(records) {
                if let Some(comm) = Comm::parse(&record, sample_type).filter(|comm| comm.exec) {
                    build_ids.begin_program(comm.pid);
                }
                if let Some(lost) = Lost::parse(&record, sample_type) {
                    build_ids.note_lost(lost.lost);
                }
                match mapping(record, sample_type) {
                    Some(mapping) => with_build_id(mapping, build_ids).encode(sample_type, filled),
                    None => filled.extend_from_slice(
                        &records[record.offset..record.offset + 8 + record.body.len()],
                    ),
                }
            }
        });
        if !filled.is_empty() {
            sink(filled);
        }
    }
}

/// Clears the flag "this record has a build-id", which the kernel sets because of another tracer's event.
fn mapping(record: RawRecord<'_>, sample_type: SampleType) -> Option<Mmap<'_>> {
    let record = RawRecord {
        misc: record.misc & !Mmap::BUILD_ID,
        ..record
    };
    (record.kind == RecordType::MMAP2)
        .then(|| Mmap::parse(&record, sample_type))
        .flatten()
}

/// A mapping with the build-id of its file, if it is known.
fn with_build_id<'a>(mapping: Mmap<'a>, build_ids: &mut BuildIds) -> Mmap<'a> {
    let build_id = build_ids.of_record(&mapping);
    Mmap {
        file: build_id.map_or(mapping.file, MmapFile::BuildId),
        ..mapping
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
