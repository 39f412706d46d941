//! That a time has come: a record in the stream of a recorder to a reader of its own. When it is settled, everything up to its time is known.
//!
//! It is of type 65, which perf ignores, among the records of processes:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTTIME` |
//! | 8 | 64 | zeros |
//! | last | | sample id; its time is the one that has come |

use super::own_record::{Magic, put_own};
use crate::perf::{SampleId, SampleType};

pub(super) const MAGIC: Magic = *b"USDTTIME";
/// Zeros after it, bytes, so that the record has 80: perf 6.1 reads so many before it ignores it.
const SPARE: usize = 64;

/// Appends a record that says that this time has come, ns of the trace's clock. `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
pub fn put_time_mark(time: u64, sample_type: SampleType, out: &mut Vec<u8>) {
    let id = SampleId {
        time,
        ..SampleId::default()
    };
    put_own(MAGIC, &[0; SPARE], &id, sample_type, out);
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
        assert!(record.body.starts_with(&MAGIC));
        let split = SampleId::split(record.body, IDS).expect("an id");
        assert_eq!(split.id.time, 77);
    }
}
