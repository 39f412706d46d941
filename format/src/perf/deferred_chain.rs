//! `PERF_RECORD_CALLCHAIN_DEFERRED`: the part of call chains in user space, which the kernel finds when the thread returns there
//! (`perf record --call-graph fp,defer`, Linux 6.19 and later).

use super::cursor::Cursor;
use super::{RawRecord, RecordType, SampleId, SampleType, SplitBody};

/// The part in user space of the call chains of one or more samples of a thread, which have its cookie.
///
/// Body: cookie 8, count 8, words 8 each, sample id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredChain<'a> {
    /// The cookie.
    pub cookie: u64,
    /// Addresses and context markers, 8 bytes each.
    pub chain: &'a [u8],
    /// Sample id, the trailer of the record: the thread, and when it returned to user space.
    pub id: SampleId,
}

impl<'a> DeferredChain<'a> {
    /// Parses a record; `None` if it is a different record or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        if record.kind != RecordType::CALLCHAIN_DEFERRED {
            return None;
        }
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let mut cursor = Cursor::new(fields);
        let cookie = cursor.u64()?;
        let bytes = usize::try_from(cursor.u64()?).ok()?.checked_mul(8)?;
        Some(Self {
            cookie,
            chain: cursor.take(bytes)?,
            id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Sample;
    use crate::perf::callchain::{CONTEXT_USER, CONTEXT_USER_DEFERRED};

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_count_beyond_the_record_is_no_chain() {
        let parse = |count: u64, given: &[u64]| {
            let body = words(&[&[0x77, count], given].concat());
            let record = RawRecord {
                kind: RecordType::CALLCHAIN_DEFERRED,
                misc: 0,
                body: &body,
                offset: 0,
            };
            DeferredChain::parse(&record, SampleType(0)).map(|found| found.chain.to_vec())
        };
        assert_eq!(parse(2, &[1, 2]), Some(words(&[1, 2])));
        assert_eq!(parse(0, &[]), Some(Vec::new()));
        assert_eq!(parse(3, &[1, 2]), None);
        assert_eq!(parse(u64::MAX, &[1, 2]), None);
    }

    #[test]
    fn the_cookie_is_no_address() {
        let kernel = -128_i64 as u64;
        let read_chain = |chain: &[u64]| {
            let chain = words(chain);
            let sample = Sample {
                callchain: &chain,
                ..Sample::default()
            };
            let addresses: Vec<u64> = sample.callers().collect();
            (addresses, sample.deferred_cookie())
        };
        let deferred = [kernel, 0xffff_8000_0000_1000, CONTEXT_USER_DEFERRED, 0x5];
        assert_eq!(
            read_chain(&deferred),
            (vec![0xffff_8000_0000_1000], Some(5))
        );
        assert_eq!(read_chain(&deferred[2..]), (vec![], Some(5)));
        assert_eq!(
            read_chain(&[CONTEXT_USER, 0x10, 0x20]),
            (vec![0x10, 0x20], None)
        );
        assert_eq!(read_chain(&[CONTEXT_USER_DEFERRED]), (vec![], None));
        assert_eq!(read_chain(&[]), (vec![], None));
    }
}
