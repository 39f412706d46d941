//! Writes a plain perf.data file, for programs that read no compressed records: what stock perf would have written without `-z`.
//!
//! | | |
//! |---|---|
//! | header, 104 bytes | written last |
//! | ids, attrs | |
//! | data | plain records, with a record of type 68 after each mebibyte |
//! | feature table | |
//! | feature sections | some readers find them here only |
//!
//! There are no records and features other than stock perf's. The probe definitions follow the string in the `VERSION` section, as in a trace, so that
//! names, types and values are the same when the file is read again.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::codec::Compression;
use super::head::{Ids, WrittenAttrs, feature_bodies, put_attrs};
use super::loss_counts::put_loss;
use super::read_error::ReadError;
use super::reader::Trace;
use super::time_range::TimeRange;
use super::{Loss, definitions_record};
use crate::definitions::Definitions;
use crate::perf::feature::{Feature, put_build_ids};
use crate::perf::header::{FileHeader, Section};
use crate::perf::record::RecordBuilder;
use crate::perf::{Attr, EventAttr, RecordType, SampleType};

/// Length of the records between two of type 68, bytes.
const ROUND: usize = 1 << 20;
/// Maximum length of all feature sections that are copied, bytes. Sections may overlap.
const MAX_COPIED: u64 = 64 << 20;

/// What a plain file has besides records.
#[derive(Clone, Debug)]
pub struct PlainHead {
    events: Vec<EventAttr>,
    features: BTreeMap<Feature, Vec<u8>>,
    definitions: Option<Definitions>,
}

impl PlainHead {
    /// The head of a trace. Of a trace that another program wrote, the feature sections are copied.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub fn from_trace(trace: &Trace) -> Result<Self, ReadError> {
        let info = trace.info();
        let bodies = feature_bodies(info, Compression::None, &[]);
        let mut features: BTreeMap<_, _> = bodies.into_iter().collect();
        if !info.build_ids.is_empty() {
            let mut body = Vec::new();
            put_build_ids(&info.build_ids, &mut body);
            features.insert(Feature::BUILD_ID, body);
        }
        let sections = match info.definitions {
            Some(_) => &[][..],
            None => &trace.sections,
        };
        let mut left = MAX_COPIED;
        for (feature, section) in sections {
            if feature.is_copied() && section.size <= left {
                left -= section.size;
                let body = trace.source.bytes(section.offset, section.size as usize)?;
                features.insert(*feature, body);
            }
        }
        Ok(Self {
            events: info.events.clone(),
            features,
            definitions: info.definitions.clone(),
        })
    }
}

/// Writes a plain perf.data file. It is complete after [`finish`](Self::finish).
#[derive(Debug)]
pub struct PlainWriter<W: Write + Seek> {
    out: BufWriter<W>,
    features: BTreeMap<Feature, Vec<u8>>,
    attrs: Section,
    data: Section,
    /// Length of the records since the last one of type 68, bytes.
    since_round: usize,
    id_type: SampleType,
}

impl<W: Write + Seek> PlainWriter<W> {
    /// Writes the attrs to an empty file.
    ///
    /// # Errors
    /// Errors of `out`, of serialization and of zstd.
    pub fn create(out: W, mut head: PlainHead) -> io::Result<Self> {
        if let Some(definitions) = &head.definitions {
            let version = head.features.entry(Feature::VERSION).or_default();
            version.extend(definitions_record::encode(definitions)?);
        }
        let mut bytes = vec![0; FileHeader::LEN];
        let WrittenAttrs { attrs, .. } = put_attrs(&head.events, Ids::Once, &mut bytes);
        let first = head.events.first();
        let mut out = BufWriter::new(out);
        out.write_all(&bytes)?;
        Ok(Self {
            out,
            features: head.features,
            attrs,
            data: Section {
                offset: bytes.len() as u64,
                size: 0,
            },
            since_round: 0,
            id_type: first.map_or(SampleType(0), |event| event.attr.id_type()),
        })
    }

    /// Appends a whole record of the kernel. Records are in the order of time.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn record(&mut self, record: &[u8]) -> io::Result<()> {
        self.append(record)?;
        self.since_round += record.len();
        if self.since_round >= ROUND {
            self.end_round()?;
        }
        Ok(())
    }

    /// Appends losses, which stock perf shows as such.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn losses(&mut self, losses: &[Loss]) -> io::Result<()> {
        let mut records = Vec::new();
        for loss in losses.iter().filter(|loss| loss.lost != 0) {
            records.clear();
            put_loss(loss, self.id_type, &mut records);
            self.record(&records)?;
        }
        Ok(())
    }

    /// Appends the feature sections and writes the header. `samples` is from the first to the last time of a sample.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn finish(mut self, samples: Option<TimeRange>) -> io::Result<()> {
        // Stock perf takes empty data for those of a recorder that was killed.
        self.end_round()?;
        let TimeRange { first, last } = samples.unwrap_or_default();
        let time = [first.to_le_bytes(), last.to_le_bytes()].concat();
        self.features.insert(Feature::SAMPLE_TIME, time);
        let mut bits = [0; 4];
        let mut table = Vec::new();
        let mut offset = self.data.end() + (Section::LEN * self.features.len()) as u64;
        for (feature, body) in &self.features {
            let size = body.len() as u64;
            Section { offset, size }.encode(&mut table);
            bits[feature.0 as usize / 64] |= 1 << (feature.0 % 64);
            offset += size;
        }
        self.out.write_all(&table)?;
        for body in self.features.values() {
            self.out.write_all(body)?;
        }
        let header = FileHeader {
            attr_size: (Attr::WRITTEN + Section::LEN) as u64,
            attrs: self.attrs,
            data: self.data,
            features: bits,
        };
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header.encode())?;
        self.out.flush()
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.data.size += record.len() as u64;
        self.out.write_all(record)
    }

    fn end_round(&mut self) -> io::Result<()> {
        let mut record = Vec::new();
        RecordBuilder::new(&mut record, RecordType::FINISHED_ROUND, 0).end();
        self.since_round = 0;
        self.append(&record)
    }
}

impl Feature {
    /// Whether a section is as true of a plain file as of the trace that it is copied from.
    fn is_copied(self) -> bool {
        const AUXTRACE: Feature = Feature(18);
        const STAT: Feature = Feature(19);
        /// The first one that perf 6.1 does not know.
        const FIRST_LATER: u32 = 32;
        let differs = [
            Self::EVENT_DESC,
            Self::SAMPLE_TIME,
            Self::DIR_FORMAT,
            Self::COMPRESSED,
            AUXTRACE,
            STAT,
        ];
        (Self::TRACING_DATA.0..FIRST_LATER).contains(&self.0) && !differs.contains(&self)
    }
}
