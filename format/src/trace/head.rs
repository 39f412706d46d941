//! Writes the head of a trace file: everything before the data.
//!
//! | offset | |
//! |---|---|
//! | 0 | file header, 104 bytes |
//! | 104 | ids of the attrs, 8 bytes each; the first one twice |
//! | | attrs: 112 bytes, then offset and size of the ids |
//! | | bodies of the features |
//! | a multiple of 65536 | data |
//!
//! The repeated id is for Perfetto's trace_processor, which reads no compressed records, and takes the feature table and the sections only where stock perf
//! writes them, after the data (`perf_data_tokenizer.cc`). There a flush cannot write them: the table would have to be a record of the next data, and the
//! sections would be written again in each flush. It refuses the file because of the id; otherwise it would abort at the end of the data. perf 6.1 and 7.2, samply 0.13 and
//! hotspot 1.6 ignore the repetition.
//!
//! The alignment is for perf, which maps the data by pages of up to 64 KiB: the record after whose first 8 bytes the data end (see
//! [`footer`](super::footer)) must not be longer than its distance from the start of the page.

use std::collections::BTreeMap;

use super::chunk::MAX_RAW;
use super::codec::Compression;
use super::head_sums::{HeadSums, sum};
use super::write_error::{EventFault, WriteError};
use super::{Clock, TraceInfo, definitions_record};
use crate::perf::feature::{Feature, put_event_desc, put_pmus, put_string, put_strings};
use crate::perf::header::{FileHeader, Section};
use crate::perf::tracing_data::put_tracing_data;
use crate::perf::{Attr, EventAttr, SampleType};

const DATA_ALIGN: u64 = 65536;

/// The parts of a head that the writer needs later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// File offset of the data.
    pub(crate) data_offset: u64,
    /// The file header, with a data size of 0.
    pub(crate) header: FileHeader,
    /// Where the ids of each event are.
    pub(crate) ids: Vec<Section>,
    /// Checksum of ids and attrs.
    pub(crate) attrs_sum: u32,
    /// The feature sections, and their checksums.
    features: BTreeMap<Feature, SummedSection>,
    /// The feature table.
    pub(crate) table: Vec<u8>,
    /// File offset of the `SAMPLE_TIME` section.
    pub(crate) sample_time: u64,
    /// File offset of the ratio in the `COMPRESSED` section, if there is one.
    pub(crate) ratio: Option<u64>,
    /// The blob of the definitions; empty if there are none.
    pub(crate) definitions: Vec<u8>,
    /// Checksums of the head.
    pub(crate) sums: Option<HeadSums>,
}

/// A feature section.
#[derive(Clone, Copy, Debug)]
struct SummedSection {
    section: Section,
    /// 0 if it changes while recording.
    sum: u32,
}

/// A head, and its encoding.
pub(crate) struct EncodedHead {
    pub(crate) head: Head,
    /// From file offset 0 to the data.
    pub(crate) bytes: Vec<u8>,
}

impl Head {
    /// Encodes a head. The data size in the header is 0.
    ///
    /// # Errors
    /// [`WriteError::NoEvent`], [`WriteError::Event`].
    pub(crate) fn encode(
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<EncodedHead, WriteError> {
        check_attrs(&info.events)?;
        let mut head = Self::default();
        if let Some(definitions) = &info.definitions {
            head.definitions =
                definitions_record::encode(definitions).map_err(WriteError::Definitions)?;
        }
        let mut bytes = vec![0; FileHeader::LEN];
        let WrittenAttrs { attrs, ids } = put_attrs(&info.events, Ids::FirstTwice, &mut bytes);
        head.ids = ids;
        head.attrs_sum = sum(&bytes[FileHeader::LEN..]);
        for (feature, body) in feature_bodies(info, compression, &head.definitions) {
            let section = Section {
                offset: bytes.len() as u64,
                size: body.len() as u64,
            };
            let changes = matches!(feature, Feature::SAMPLE_TIME | Feature::COMPRESSED);
            let sum = if changes { 0 } else { sum(&body) };
            bytes.extend(body);
            head.set_section(feature, section, sum);
            match feature {
                Feature::SAMPLE_TIME => head.sample_time = section.offset,
                Feature::COMPRESSED => head.ratio = Some(section.offset + RATIO_AT),
                _ => {}
            }
        }
        head.data_offset = (bytes.len() as u64).next_multiple_of(DATA_ALIGN);
        bytes.resize(head.data_offset as usize, 0);
        head.header = FileHeader {
            attr_size: (Attr::WRITTEN + Section::LEN) as u64,
            attrs,
            data: Section {
                offset: head.data_offset,
                size: 0,
            },
            features: [0; 4],
        };
        head.update();
        bytes[..FileHeader::LEN].copy_from_slice(&head.header.encode());
        Ok(EncodedHead { head, bytes })
    }

    /// Sets a feature section. [`update`](Self::update) completes the change.
    pub(crate) fn set_section(&mut self, feature: Feature, section: Section, sum: u32) {
        self.features
            .insert(feature, SummedSection { section, sum });
    }

    /// Sets feature bits, table and checksums for the sections and attrs.
    pub(crate) fn update(&mut self) {
        self.table.clear();
        self.header.features = [0; 4];
        for (feature, SummedSection { section, .. }) in &self.features {
            section.encode(&mut self.table);
            self.header.features[feature.0 as usize / 64] |= 1 << (feature.0 % 64);
        }
        self.sums = Some(HeadSums {
            header: self.header,
            attrs: self.attrs_sum,
            table: sum(&self.table),
            features: self.features.values().map(|of| of.sum).collect(),
        });
    }
}

/// Attrs that were written.
#[derive(Debug)]
pub(crate) struct WrittenAttrs {
    /// The attrs.
    pub(crate) attrs: Section,
    /// The ids of each.
    pub(crate) ids: Vec<Section>,
}

/// Which ids the attrs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Each one once.
    Once,
    /// The first one twice.
    FirstTwice,
}

/// Appends ids and attrs.
pub(crate) fn put_attrs(events: &[EventAttr], which: Ids, bytes: &mut Vec<u8>) -> WrittenAttrs {
    let mut attrs = Vec::new();
    let mut all_ids = Vec::new();
    let mut repeated = match which {
        Ids::Once => None,
        Ids::FirstTwice => events.iter().flat_map(|event| &event.ids).next(),
    };
    for event in events {
        let offset = bytes.len() as u64;
        if let Some(id) = repeated.take_if(|id| event.ids.first() == Some(id)) {
            bytes.extend(id.to_le_bytes());
        }
        bytes.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
        let ids = Section {
            offset,
            size: bytes.len() as u64 - offset,
        };
        event.attr.encode(&mut attrs);
        ids.encode(&mut attrs);
        all_ids.push(ids);
    }
    let section = Section {
        offset: bytes.len() as u64,
        size: attrs.len() as u64,
    };
    bytes.extend(attrs);
    WrittenAttrs {
        attrs: section,
        ids: all_ids,
    }
}

/// Offset of the ratio in the `COMPRESSED` section, after version, type and level.
const RATIO_AT: u64 = 12;

/// The bodies of the feature sections, in the order of their bits.
pub(crate) fn feature_bodies(
    info: &TraceInfo,
    compression: Compression,
    definitions: &[u8],
) -> Vec<(Feature, Vec<u8>)> {
    let string = |text: &str| {
        let mut body = Vec::new();
        put_string(text, &mut body);
        body
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let with = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut body = Vec::new();
        put(&mut body);
        body
    };
    let mut bodies = Vec::new();
    if !info.tracepoints.is_empty() {
        let body = with(&|out| put_tracing_data(&info.tracepoints, out));
        bodies.push((Feature::TRACING_DATA, body));
    }
    bodies.extend([
        (Feature::HOSTNAME, string(&info.hostname)),
        (Feature::OSRELEASE, string(&info.os_release)),
        (
            Feature::VERSION,
            [string(&info.version), definitions.to_vec()].concat(),
        ),
        (Feature::ARCH, string(&info.machine)),
        (
            Feature::NRCPUS,
            words(&[info.cpus_available, info.cpus_online]),
        ),
    ]);
    if !info.cpu_description.is_empty() {
        bodies.push((Feature::CPUDESC, string(&info.cpu_description)));
    }
    if info.total_memory_kb != 0 {
        let body = info.total_memory_kb.to_le_bytes();
        bodies.push((Feature::TOTAL_MEM, body.to_vec()));
    }
    if !info.command.is_empty() {
        let body = with(&|out| put_strings(&info.command, out));
        bodies.push((Feature::CMDLINE, body));
    }
    let body = with(&|out| put_event_desc(&info.events, out));
    bodies.push((Feature::EVENT_DESC, body));
    if !info.pmus.is_empty() {
        let body = with(&|out| put_pmus(&info.pmus, out));
        bodies.push((Feature::PMU_MAPPINGS, body));
    }
    bodies.push((Feature::SAMPLE_TIME, vec![0; 8 + 8]));
    if let Some(clock) = &info.clock {
        let resolution = clock.resolution_ns.to_le_bytes();
        bodies.push((Feature::CLOCKID, resolution.to_vec()));
    }
    if let Compression::Zstd(level) = compression {
        // Version, type zstd, level, ratio (set at the end), size of the decompression buffer.
        let body = words(&[0, 1, level.max(0) as u32, 1, MAX_RAW as u32]);
        bodies.push((Feature::COMPRESSED, body));
    }
    if let Some(clock) = &info.clock {
        bodies.push((Feature::CLOCK_DATA, clock_data(clock)));
    }
    bodies
}

fn clock_data(clock: &Clock) -> Vec<u8> {
    const VERSION: u32 = 1;
    let mut body = Vec::new();
    body.extend(VERSION.to_le_bytes());
    body.extend(clock.id.to_le_bytes());
    body.extend(clock.wall_ns.to_le_bytes());
    body.extend(clock.clock_ns.to_le_bytes());
    body
}

/// Checks what the writer and all readers rely on: the time has the same offset in all samples and the same offset in all other records,
/// and all attrs have one `read_format`.
pub(crate) fn check_attrs(events: &[EventAttr]) -> Result<(), WriteError> {
    let first = events.first().ok_or(WriteError::NoEvent)?;
    events.iter().try_for_each(|event| check_attr(first, event))
}

/// Checks an event of a trace whose first one is given.
pub(crate) fn check_attr(first: &EventAttr, event: &EventAttr) -> Result<(), WriteError> {
    let needed = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU;
    let refuse = |event: &EventAttr, fault: EventFault| {
        Err(WriteError::Event {
            event: event.name.clone(),
            fault,
        })
    };
    let attr = &event.attr;
    if !attr.sample_type.has(needed) {
        let (found, needed) = (attr.sample_type.0, needed.0);
        return refuse(event, EventFault::SampleType { found, needed });
    }
    if attr.flags & Attr::SAMPLE_ID_ALL == 0 {
        return refuse(event, EventFault::NoSampleId);
    }
    if attr.id_type() != first.attr.id_type() || attr.read_format != first.attr.read_format {
        let fault = EventFault::Different {
            id_type: attr.id_type().0,
            read_format: attr.read_format,
            first: first.name.clone(),
            first_id_type: first.attr.id_type().0,
            first_read_format: first.attr.read_format,
        };
        return refuse(event, fault);
    }
    Ok(())
}
