//! Events that are added while recording.
//!
//! The head of a file cannot grow. With the next flush the parts of it that change are written again into the data, in records that perf
//! ignores (see [`section_records`](super::section_records)), in this order:
//!
//! | | |
//! |---|---|
//! | `EVENT_DESC`, `TRACING_DATA` | the sections of all events |
//! | ids | those of the events that were added |
//! | attrs | all attrs; those of former events with the ids where they were |
//! | `VERSION` | the string, and after it the definitions in their own records |
//!
//! A footer follows, for readers of a file that is cut before the next one. The footer at the end of this flush has a feature table with the
//! new sections. One write of the header commits attrs, features and data together, so that a killed recorder leaves all or nothing. What was
//! written before stays valid for older footers.
//!
//! perf wants attrs, names and formats each in one piece, so they cannot be appended to. An event takes about 0.8 KiB, in each flush that adds one:
//! 256 events in as many flushes are 27 MB in all, 1000 are 400 MB (`cargo bench --bench following -- head`).

use std::collections::HashSet;
use std::ops::Range;

use super::added_events_fault::AddedEventsFault;
use super::chunk::RECORD_HEADER;
use super::footer::put_ignored_record;
use super::head::{Head, check_attrs};
use super::head_sums::sum;
use super::section_records::{MAX_PIECE, SectionRecords};
use super::write_error::{EventFault, WriteError};
use super::{TraceInfo, definitions_record, file_head};
use crate::definitions::{Definitions, SiteDefinition};
use crate::perf::feature::{Feature, put_name_and_ids, put_string};
use crate::perf::header::Section;
use crate::perf::tracing_data::{longest_text, put_tracing_data};
use crate::perf::{Attr, EventAttr, SampleType};

/// Checks events of which all but the first `former` were added.
///
/// # Errors
/// [`WriteError::Event`], [`WriteError::FormerEvents`].
pub(crate) fn check(former: &[EventAttr], info: &TraceInfo) -> Result<(), WriteError> {
    check_attrs(&info.events)?;
    if !info.events.starts_with(former) {
        return Err(WriteError::FormerEvents);
    }
    let refuse = |event: &EventAttr, fault| {
        Err(WriteError::Event {
            event: event.name.clone(),
            fault,
        })
    };
    let mut taken: HashSet<u64> = former
        .iter()
        .flat_map(|event| &event.ids)
        .copied()
        .collect();
    let uses_place = |event: &&EventAttr| event.attr.sample_type.has(SampleType::REGS_INTR);
    if let Some(event) = info.events.iter().find(uses_place) {
        return refuse(event, EventFault::InterruptRegisters);
    }
    for (number, event) in info.events.iter().enumerate().skip(former.len()) {
        if number as u64 >= file_head::MAX_ATTRS {
            let max = file_head::MAX_ATTRS;
            return refuse(event, EventFault::TooMany { max });
        }
        if size_of_val(event.ids.as_slice()) > MAX_IDS {
            let ids = event.ids.len();
            return refuse(event, EventFault::TooManyIds { ids });
        }
        let name = event.name.len();
        if name > MAX_NAME {
            return refuse(event, EventFault::TooLong { bytes: name });
        }
        if let Some(&id) = event.ids.iter().find(|id| !taken.insert(**id)) {
            return refuse(event, EventFault::TakenId { id });
        }
    }
    match longest_text(&info.tracepoints) {
        bytes if bytes > MAX_PIECE => Err(WriteError::Formats { bytes }),
        _ => Ok(()),
    }
}

/// Joins a head and events that a stream adds to it. Nothing of the former events changes.
///
/// # Errors
/// [`AddedEventsFault`].
pub(crate) fn join(former: &TraceInfo, added: TraceInfo) -> Result<TraceInfo, AddedEventsFault> {
    let mut info = former.clone();
    let ids: HashSet<u64> = added
        .events
        .iter()
        .flat_map(|event| &event.ids)
        .copied()
        .collect();
    info.events.extend(added.events);
    check(&former.events, &info).map_err(|error| match error {
        WriteError::Event {
            fault: EventFault::TakenId { id },
            ..
        } => AddedEventsFault::TakenId { id },
        WriteError::Event { .. } | WriteError::Formats { .. } => AddedEventsFault::Attr,
        _ => AddedEventsFault::FormerEvents,
    })?;
    let (Some(known), Some(new)) = (&mut info.definitions, added.definitions) else {
        return Err(AddedEventsFault::FormerEvents);
    };
    let Definitions { files, probes, .. } = new;
    if !files.starts_with(&known.files) || !probes.starts_with(&known.probes) {
        return Err(AddedEventsFault::FormerEvents);
    }
    let sites = probes
        .iter()
        .skip(known.probes.len())
        .flat_map(|probe| &probe.sites);
    let mut of_sites = sites.flat_map(|SiteDefinition { ids, .. }| ids);
    if let Some(&id) = of_sites.find(|id| !ids.contains(id)) {
        return Err(AddedEventsFault::ForeignId { id });
    }
    (known.files, known.probes) = (files, probes);
    info.tracepoints.extend(added.tracepoints);
    Ok(info)
}

/// Maximum length of the name of an event that is added, bytes.
const MAX_NAME: usize = MAX_PIECE / 4;
/// Maximum length of the ids of an event that is added, bytes, so that they fit into a record.
const MAX_IDS: usize = MAX_PIECE / 2;

/// Appends the changed parts of a head, and returns the head with them. `at` is the file offset of the first byte of `out`.
///
/// # Errors
/// [`WriteError::Event`], [`WriteError::Definitions`].
pub(crate) fn put(
    head: &Head,
    info: &TraceInfo,
    at: u64,
    out: &mut Vec<u8>,
) -> Result<Head, WriteError> {
    let mut changed = head.clone();
    let mut put = Changes { at, out };
    let section = put.event_desc(&info.events);
    changed.set_section(Feature::EVENT_DESC, section, sum(put.bytes(section)));
    if !info.tracepoints.is_empty() {
        let section = put.tracing_data(info);
        changed.set_section(Feature::TRACING_DATA, section, sum(put.bytes(section)));
    }
    let added = info.events.get(head.ids.len()..).unwrap_or_default();
    put.ids(added, &mut changed.ids);
    let attrs = put.attrs(&info.events, &changed.ids);
    let ids = info.events.iter().flat_map(|event| &event.ids);
    changed.attrs_sum = sum_of_attrs(put.bytes(attrs), ids);
    changed.header.attrs = attrs;
    if let Some(definitions) = &info.definitions {
        let blob = definitions_record::encode(definitions).map_err(WriteError::Definitions)?;
        let section = put.version(&info.version, &blob);
        changed.set_section(Feature::VERSION, section, sum(put.bytes(section)));
    }
    changed.update();
    Ok(changed)
}

/// The checksum of attrs in the data, and of the ids of all events.
pub(crate) fn sum_of_attrs<'e>(attrs: &[u8], ids: impl IntoIterator<Item = &'e u64>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(attrs);
    for id in ids {
        hasher.update(&id.to_le_bytes());
    }
    hasher.finalize()
}

/// The parts that change.
struct Changes<'a> {
    /// File offset of the first byte of `out`.
    at: u64,
    out: &'a mut Vec<u8>,
}

impl Changes<'_> {
    fn event_desc(&mut self, events: &[EventAttr]) -> Section {
        let from = self.out.len() + RECORD_HEADER;
        let mut records = SectionRecords::begin(self.out);
        records.out().extend((events.len() as u32).to_le_bytes());
        records.out().extend((Attr::WRITTEN as u32).to_le_bytes());
        for event in events {
            // Events are named by their order, too.
            let fits = size_of_val(event.ids.as_slice()) <= MAX_IDS;
            let ids = if fits { event.ids.as_slice() } else { &[] };
            let mut rest = Vec::new();
            put_name_and_ids(&event.name, ids, &mut rest);
            records.put_attr(&event.attr, rest.len());
            records.out().extend(rest);
        }
        let end = records.end();
        self.section(from..end)
    }

    fn tracing_data(&mut self, info: &TraceInfo) -> Section {
        let from = self.out.len() + RECORD_HEADER;
        let mut records = SectionRecords::begin(self.out);
        put_tracing_data(&info.tracepoints, &mut records);
        let end = records.end();
        self.section(from..end)
    }

    /// Appends the ids of events, and adds their sections.
    fn ids(&mut self, events: &[EventAttr], sections: &mut Vec<Section>) {
        let mut records = SectionRecords::begin(self.out);
        for event in events {
            let size = size_of_val(event.ids.as_slice());
            records.make_room(size);
            sections.push(Section {
                offset: self.at + records.out().len() as u64,
                size: size as u64,
            });
            let ids = event.ids.iter().flat_map(|id| id.to_le_bytes());
            records.out().extend(ids);
        }
        records.end();
    }

    /// Appends attrs, which end with their record.
    fn attrs(&mut self, events: &[EventAttr], ids: &[Section]) -> Section {
        let from = self.out.len() + RECORD_HEADER;
        let mut records = SectionRecords::begin(self.out);
        for (event, ids) in events.iter().zip(ids) {
            records.put_attr(&event.attr, Section::LEN);
            ids.encode(records.out());
        }
        let end = records.end();
        self.section(from..end)
    }

    fn version(&mut self, version: &str, blob: &[u8]) -> Section {
        let from = self.out.len() + RECORD_HEADER;
        put_ignored_record(self.out, |out| put_string(version, out));
        definitions_record::put_records(blob, self.out);
        self.section(from..self.out.len())
    }

    const fn section(&self, range: Range<usize>) -> Section {
        Section {
            offset: self.at + range.start as u64,
            size: (range.end - range.start) as u64,
        }
    }

    fn bytes(&self, section: Section) -> &[u8] {
        let from = (section.offset - self.at) as usize;
        let bytes = self.out.get(from..from + section.size as usize);
        bytes.unwrap_or_default()
    }
}
