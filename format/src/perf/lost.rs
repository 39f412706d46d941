//! `PERF_RECORD_LOST` and `PERF_RECORD_LOST_SAMPLES`: records that the kernel could not deliver.

use super::cursor::Cursor;
use super::record::RecordBuilder;
use super::{RawRecord, RecordType, SampleId, SampleType, SplitBody};

/// Number of records of any type that were lost because a ring was full.
///
/// Body: id 8, lost 8, sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Id of the event that owns the ring.
    pub event_id: u64,
    /// Records.
    pub lost: u64,
    /// Sample id, the trailer of the record.
    pub id: SampleId,
}

/// Number of samples that an event lost.
///
/// Body: lost (8 bytes), sample id, which identifies the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSamples {
    /// Samples.
    pub lost: u64,
    /// Sample id, the trailer of the record.
    pub id: SampleId,
}

impl Lost {
    /// Parses a record; `None` if it is not a LOST record or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        if record.kind != RecordType::LOST {
            return None;
        }
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let mut cursor = Cursor::new(fields);
        Some(Self {
            event_id: cursor.u64()?,
            lost: cursor.u64()?,
            id,
        })
    }
}

impl LostSamples {
    /// Parses a record; `None` if it is not a LOST_SAMPLES record or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        if record.kind != RecordType::LOST_SAMPLES {
            return None;
        }
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let lost = Cursor::new(fields).u64()?;
        Some(Self { lost, id })
    }

    /// Appends the record.
    pub fn encode(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        let mut record = RecordBuilder::new(out, RecordType::LOST_SAMPLES, 0);
        record.bytes(&self.lost.to_le_bytes());
        record.finish(&self.id, sample_type);
    }
}
