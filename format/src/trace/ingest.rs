//! Accepts records, counts them, and separates samples from other records.

use super::buffer::RecordBuffer;
use super::chunk::RECORD_HEADER;
use super::write_error::{InvalidRecord, RecordFault};
use crate::perf::{RecordType, SampleId, SampleType, record_header};

/// Offset of the time in a sample, after the record header, `IDENTIFIER`, `IP` and `TID`.
const SAMPLE_TIME_AT: usize = RECORD_HEADER + 3 * 8;

/// The records that are buffered until the next flush.
#[derive(Debug)]
pub(crate) struct Ingest {
    /// Samples.
    pub(crate) samples: RecordBuffer,
    /// All other records.
    pub(crate) metadata: RecordBuffer,
    /// Distance of the time from the end of a metadata record, bytes.
    time_from_end: usize,
    /// Why records were refused, if any were.
    refused: Option<InvalidRecord>,
}

impl Ingest {
    /// `id_type` is the layout of the sample id of all records; it must include `TIME`.
    pub(crate) fn new(id_type: SampleType) -> Self {
        Self {
            samples: RecordBuffer::default(),
            metadata: RecordBuffer::default(),
            time_from_end: SampleId::time_from_end(id_type).unwrap_or_default(),
            refused: None,
        }
    }

    /// Length of the buffered records, bytes.
    pub(crate) fn pending(&self) -> usize {
        self.samples.len() + self.metadata.len()
    }

    /// Adds whole records. An invalid record ends the call; [`take_refusal`](Self::take_refusal) returns the reason.
    pub(crate) fn push(&mut self, records: &[u8]) {
        let mut at = 0;
        while at < records.len() {
            let run = self.push_samples(&records[at..]);
            at += run;
            if at < records.len() {
                match self.push_other(&records[at..]) {
                    Ok(size) => at += size,
                    Err(fault) => {
                        self.refused.get_or_insert(InvalidRecord {
                            offset: at,
                            len: records.len(),
                            fault,
                        });
                        return;
                    }
                }
            }
        }
    }

    /// Adds the samples at the front. Returns their length in bytes.
    fn push_samples(&mut self, records: &[u8]) -> usize {
        let start = self.samples.len();
        let mut at = 0;
        while let Some((kind, size)) = header(&records[at..]) {
            if kind != RecordType::SAMPLE || size < SAMPLE_TIME_AT + 8 {
                break;
            }
            let time = word(&records[at + SAMPLE_TIME_AT..]);
            self.samples.count(start + at, size, true, time);
            at += size;
        }
        self.samples.extend(&records[..at]);
        at
    }

    /// Adds the record at the front, which must be a metadata record. Returns its size in bytes.
    fn push_other(&mut self, records: &[u8]) -> Result<usize, RecordFault> {
        let Some((kind, size)) = header(records) else {
            let header = records[..records.len().min(RECORD_HEADER)].to_vec();
            return Err(RecordFault::Size { header });
        };
        if kind == RecordType::SAMPLE {
            return Err(RecordFault::ShortSample { size });
        }
        let time = size
            .checked_sub(self.time_from_end)
            .filter(|&time_at| time_at >= RECORD_HEADER)
            .map_or(0, |time_at| word(&records[time_at..]));
        self.metadata.count(self.metadata.len(), size, false, time);
        self.metadata.extend(&records[..size]);
        Ok(size)
    }

    /// Why records were refused since the last call.
    pub(crate) fn take_refusal(&mut self) -> Option<InvalidRecord> {
        self.refused.take()
    }

    /// Takes all records, sealed, as samples and metadata. `empty` replaces the two buffers.
    pub(crate) fn take(&mut self, empty: [RecordBuffer; 2]) -> [RecordBuffer; 2] {
        self.samples.seal();
        self.metadata.seal();
        let [samples, metadata] = empty;
        [
            std::mem::replace(&mut self.samples, samples),
            std::mem::replace(&mut self.metadata, metadata),
        ]
    }
}

/// Type and size of the record at the front; `None` unless it is complete and its size is valid.
#[inline]
fn header(records: &[u8]) -> Option<(RecordType, usize)> {
    let (kind, _, size) = record_header(records)?;
    let whole = size >= RECORD_HEADER && size.is_multiple_of(8) && size <= records.len();
    whole.then_some((kind, size))
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk::<8>()
        .map_or(0, |word| u64::from_le_bytes(*word))
}
