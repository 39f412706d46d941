//! Times in which probes were detached, so that they did not cost the traced threads more than their budget.
//!
//! The recorder writes a record of type 65, which perf ignores, among the records of processes:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTPAUS` |
//! | 8 | | JSON of [`Pause`] with NUL, padded with zeros to a multiple of 8 and to at least 80 bytes of the whole record |
//! | last | | sample id; its time is that at which it was written |
//!
//! One is written when a pause begins, without its end, and one when it ends. A later record with the same number replaces an earlier one. The
//! trace has no samples of these ids with a time within the pause. The probes that begin and end a span are in the same pauses.

use serde::{Deserialize, Serialize};

use super::own_record::{Magic, is_own, own_json, padded_json, put_own};
use crate::perf::{RawRecord, SampleId, SampleType};

pub(super) const MAGIC: Magic = *b"USDTPAUS";
/// Maximum number of sample ids, so that the size of a record, a `u16`, suffices.
pub const MAX_PAUSED_IDS: usize = 2048;

/// A time in which probes were detached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Number in the recording, from 0.
    pub number: u64,
    /// Sample ids of all sites of the probes, at most [`MAX_PAUSED_IDS`].
    pub ids: Vec<u64>,
    /// Time of the trace's clock from which on hits are not recorded, ns.
    pub from_ns: u64,
    /// Time until which they are not, ns; `None` if the recording ended before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
}

impl Pause {
    /// Whether this is such a record, which may be damaged.
    #[must_use]
    pub fn is(record: &RawRecord<'_>) -> bool {
        is_own(record, MAGIC)
    }

    /// Parses a record; `None` if it is another one or is damaged.
    ///
    /// `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        own_json(record, MAGIC, sample_type)
    }

    /// Appends the record.
    ///
    /// # Errors
    /// Errors of serialization.
    pub fn encode(
        &self,
        id: &SampleId,
        sample_type: SampleType,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let json = padded_json(self)?;
        put_own(MAGIC, &json, id, sample_type, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Records;

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    #[test]
    fn records_are_read_as_they_were_written() {
        let longest = Pause {
            number: u64::MAX,
            ids: vec![u64::MAX; MAX_PAUSED_IDS],
            from_ns: 1,
            to_ns: Some(u64::MAX),
        };
        for pause in [Pause::default(), longest] {
            let mut bytes = Vec::new();
            pause.encode(&SampleId::default(), IDS, &mut bytes).unwrap();
            assert!(bytes.len() >= 80 && bytes.len().is_multiple_of(8));
            let record = Records::new(&bytes).next().unwrap();
            assert!(Pause::parse(&record, IDS) == Some(pause));
        }
    }
}
