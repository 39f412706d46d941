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
//! perf wants attrs, names and formats each in one piece, so they cannot be appended to. An event takes about 0.8 KiB in each of these heads. So that a
//! file does not grow with the square of the additions, they are written while they are short and when they have doubled; other additions are
//! [pieces](super::added_piece).

use std::ops::Range;

use super::chunk::RECORD_HEADER;
use super::damage::AddedEventsFault;
use super::definitions_record::PART_MAGIC;
use super::footer::put_ignored_record;
use super::head::Head;
use super::head_sums::sum;
use super::known_events::{EventsPart, KnownEvents};
use super::limits::Limit;
use super::section_records::SectionRecords;
use super::write_error::{EventFault, WriteError};
use super::{TraceInfo, definitions_record};
use crate::definitions::{Definitions, SiteDefinition};
use crate::perf::feature::{Feature, put_name_and_ids, put_string};
use crate::perf::header::Section;
use crate::perf::tracing_data::put_tracing_data;
use crate::perf::{Attr, EventAttr};

/// Joins a head and events that a stream adds to it. Nothing of the former events changes.
///
/// # Errors
/// [`AddedEventsFault`]; the head is as before.
pub(crate) fn join(
    info: &mut TraceInfo,
    known: &mut KnownEvents,
    added: TraceInfo,
) -> Result<(), AddedEventsFault> {
    let (Some(definitions), Some(new)) = (&mut info.definitions, added.definitions) else {
        return Err(AddedEventsFault::FormerEvents);
    };
    let Definitions { files, probes, .. } = new;
    // Those of the former events were repeated by earlier recorders.
    let repeats = !definitions.probes.is_empty()
        && probes.starts_with(&definitions.probes)
        && files.starts_with(&definitions.files);
    let (former_files, former_probes) = match repeats {
        true => (definitions.files.len(), definitions.probes.len()),
        false => (0, 0),
    };
    let part = EventsPart {
        events: &added.events,
        formats: &added.tracepoints,
        files: files.get(former_files..).unwrap_or_default(),
        probes: probes.get(former_probes..).unwrap_or_default(),
    };
    let checked = known.check(&info.events, &part);
    let checked = checked.map_err(|error| match error {
        WriteError::Event {
            fault: EventFault::TakenId { id },
            ..
        } => AddedEventsFault::TakenId { id },
        WriteError::Limit(exceeded) => AddedEventsFault::Limit(exceeded),
        _ => AddedEventsFault::Attr,
    })?;
    let sites = part.probes.iter().flat_map(|probe| &probe.sites);
    let mut of_sites = sites.flat_map(|SiteDefinition { ids, .. }| ids);
    if let Some(&id) = of_sites.find(|id| !checked.has(**id)) {
        return Err(AddedEventsFault::ForeignId { id });
    }
    known.take(checked);
    definitions.files.extend_from_slice(part.files);
    definitions.probes.extend_from_slice(part.probes);
    info.events.extend(added.events);
    info.tracepoints.extend(added.tracepoints);
    Ok(())
}

/// Maximum length of the ids of an event that is added, bytes, so that they fit into a record.
const MAX_IDS: usize = Limit::IdsOfEvent.max() as usize * size_of::<u64>();

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
        definitions_record::put_records(PART_MAGIC, blob, self.out);
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
