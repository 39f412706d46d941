//! The sample id: the trailer of all kernel records except samples (`struct sample_id`).

use super::SampleType;
use super::cursor::Cursor;

/// Process, thread, time, CPU and event of a record. Parts that `sample_type` does not select are 0.
///
/// It is at the end of the record, in this order, each part only if its bit is set:
///
/// | bit | bytes |
/// |---|---|
/// | `TID` | pid 4, tid 4 |
/// | `TIME` | 8 |
/// | `ID` | 8 |
/// | `STREAM_ID` | 8 |
/// | `CPU` | cpu 4, reserved 4 |
/// | `IDENTIFIER` | 8 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Time, ns of the trace's clock; 0 in records synthesized for processes that already ran.
    pub time: u64,
    /// Event id (`ID`).
    pub id: u64,
    /// Stream id.
    pub stream_id: u64,
    /// CPU.
    pub cpu: u32,
    /// Event id (`IDENTIFIER`).
    pub identifier: u64,
}

/// The body of a record, split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitBody<'a> {
    /// The part before the trailer.
    pub fields: &'a [u8],
    /// The trailer.
    pub id: SampleId,
}

impl SampleId {
    /// Length for a `sample_type`, bytes.
    #[must_use]
    pub const fn len(sample_type: SampleType) -> usize {
        8 * (sample_type.0 & SampleType::SAMPLE_ID.0).count_ones() as usize
    }

    /// Distance of the time from the end of the record, bytes; `None` without a time.
    #[must_use]
    pub(crate) const fn time_from_end(sample_type: SampleType) -> Option<usize> {
        if !sample_type.has(SampleType::TIME) {
            return None;
        }
        Some(Self::len(SampleType(sample_type.0 & !SampleType::TID.0)))
    }

    /// Splits a record's body into the part before the trailer, and the trailer.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type). `None` if the body is too short.
    #[must_use]
    pub fn split(body: &[u8], sample_type: SampleType) -> Option<SplitBody<'_>> {
        let at = body.len().checked_sub(Self::len(sample_type))?;
        let (before, trailer) = body.split_at_checked(at)?;
        Some(SplitBody {
            fields: before,
            id: Self::parse(trailer, sample_type)?,
        })
    }

    fn parse(trailer: &[u8], sample_type: SampleType) -> Option<Self> {
        let mut cursor = Cursor::new(trailer);
        let mut id = Self::default();
        if sample_type.has(SampleType::TID) {
            id.pid = cursor.i32()?;
            id.tid = cursor.i32()?;
        }
        if sample_type.has(SampleType::TIME) {
            id.time = cursor.u64()?;
        }
        if sample_type.has(SampleType::ID) {
            id.id = cursor.u64()?;
        }
        if sample_type.has(SampleType::STREAM_ID) {
            id.stream_id = cursor.u64()?;
        }
        if sample_type.has(SampleType::CPU) {
            id.cpu = cursor.u32()?;
            cursor.u32()?;
        }
        if sample_type.has(SampleType::IDENTIFIER) {
            id.identifier = cursor.u64()?;
        }
        Some(id)
    }

    /// Appends the encoded sample id.
    pub fn encode(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        if sample_type.has(SampleType::TID) {
            out.extend(self.pid.to_le_bytes());
            out.extend(self.tid.to_le_bytes());
        }
        if sample_type.has(SampleType::TIME) {
            out.extend(self.time.to_le_bytes());
        }
        if sample_type.has(SampleType::ID) {
            out.extend(self.id.to_le_bytes());
        }
        if sample_type.has(SampleType::STREAM_ID) {
            out.extend(self.stream_id.to_le_bytes());
        }
        if sample_type.has(SampleType::CPU) {
            out.extend(u64::from(self.cpu).to_le_bytes());
        }
        if sample_type.has(SampleType::IDENTIFIER) {
            out.extend(self.identifier.to_le_bytes());
        }
    }
}
