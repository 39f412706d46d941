//! Records of usdtrec's own among those of processes: of type 65, which perf ignores. The first eight bytes of the body say which.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::perf::cursor::{Cursor, until_nul};
use crate::perf::record::RecordBuilder;
use crate::perf::{RawRecord, RecordType, SampleId, SampleType, SplitBody};

/// The first bytes of the body.
pub(super) type Magic = [u8; 8];

/// Minimum length of the JSON, bytes, so that the record has 80: perf 6.1 reads so many before it ignores it.
const MIN_JSON: usize = 64;

/// What a record has after its first bytes.
pub(super) struct OwnFields<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) id: SampleId,
}

/// Whether a record begins so. It may be too short.
pub(super) fn is_own(record: &RawRecord<'_>, magic: Magic) -> bool {
    record.kind == RecordType::HEADER_EVENT_TYPE && record.body.starts_with(&magic)
}

/// The fields of a record that begins so; `None` if it is another one or is too short.
pub(super) fn own_fields<'a>(
    record: &RawRecord<'a>,
    magic: Magic,
    sample_type: SampleType,
) -> Option<OwnFields<'a>> {
    if !is_own(record, magic) {
        return None;
    }
    let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
    let mut cursor = Cursor::new(fields);
    cursor.take(magic.len())?;
    Some(OwnFields { cursor, id })
}

/// The JSON of a record that begins so and has nothing else; `None` if it is another record or is damaged.
pub(super) fn own_json<T: DeserializeOwned>(
    record: &RawRecord<'_>,
    magic: Magic,
    sample_type: SampleType,
) -> Option<T> {
    let OwnFields { cursor, .. } = own_fields(record, magic, sample_type)?;
    serde_json::from_slice(until_nul(cursor.rest())).ok()
}

/// The JSON of a value as a record has it: with NUL, padded with zeros to a multiple of 8 and so that the record has 80 bytes. The size of a
/// record is a `u16`.
pub(super) fn padded_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(value)?;
    json.resize((json.len() + 1).next_multiple_of(8).max(MIN_JSON), 0);
    Ok(json)
}

/// Appends a record that begins so.
pub(super) fn put_own(
    magic: Magic,
    body: &[u8],
    id: &SampleId,
    sample_type: SampleType,
    out: &mut Vec<u8>,
) {
    let mut record = RecordBuilder::new(out, RecordType::HEADER_EVENT_TYPE, 0);
    record.bytes(&magic);
    record.bytes(body);
    record.finish(id, sample_type);
}

pub(super) const TIME_MARK: Magic = *b"USDTTIME";
/// Zeros after it, bytes, so that the record has 80: perf 6.1 reads so many before it ignores it.
const SPARE: usize = 64;

/// Appends a record that says that this time has come, ns of the trace's clock: in the stream of a recorder to a reader of its own, which knows then
/// everything up to this time. The body is `USDTTIME`, 64 zeros, and a sample id with the time. `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
pub fn put_time_mark(time: u64, sample_type: SampleType, out: &mut Vec<u8>) {
    let id = SampleId {
        time,
        ..SampleId::default()
    };
    put_own(TIME_MARK, &[0; SPARE], &id, sample_type, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Records;

    #[test]
    fn it_has_its_time() {
        const IDS: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);
        let mut bytes = Vec::new();
        put_time_mark(77, IDS, &mut bytes);
        assert!(bytes.len() >= 80);
        let record = Records::new(&bytes).next().expect("a record");
        assert!(record.body.starts_with(&TIME_MARK));
        let split = SampleId::split(record.body, IDS).expect("an id");
        assert_eq!(split.id.time, 77);
    }
}
