//! Sample ids of one file of several that mean something else in another one, and what they are replaced by.

use std::collections::HashMap;

use super::string_argument;
use crate::perf::{RecordType, record_header};

/// Size of a record header, bytes.
const HEADER: usize = 8;

/// New ids by those in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    new: HashMap<u64, u64>,
}

impl IdMap {
    /// Adds an id.
    pub(crate) fn insert(&mut self, id: u64, new: u64) {
        self.new.insert(id, new);
    }

    /// Whether all ids stay.
    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    /// What an id is now.
    pub(crate) fn get(&self, id: u64) -> u64 {
        self.new.get(&id).copied().unwrap_or(id)
    }

    /// Replaces the ids in whole records, all samples of which begin with their id, as the sample ids of other records end with it.
    pub(crate) fn replace(&self, records: &mut [u8]) {
        let mut rest = records;
        while let Some((kind, _, size @ HEADER..)) = record_header(rest) {
            let Some((record, others)) = rest.split_at_mut_checked(size) else {
                return;
            };
            let body = record.get_mut(HEADER..).unwrap_or_default();
            let at = match kind {
                // The id that is lost; `LOST_SAMPLES` has it in its sample id.
                RecordType::SAMPLE | RecordType::LOST => Some(0),
                RecordType::HEADER_EVENT_TYPE => {
                    body.starts_with(&string_argument::MAGIC).then_some(HEADER)
                }
                RecordType::LOST_SAMPLES => body.len().checked_sub(size_of::<u64>()),
                _ => None,
            };
            if let Some(at) = at {
                self.replace_at(body, at);
            }
            rest = others;
        }
    }

    fn replace_at(&self, body: &mut [u8], at: usize) {
        let word = body.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        if let Some(word) = word {
            *word = self.get(u64::from_le_bytes(*word)).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::{Records, SampleId, SampleType};
    use crate::trace::StringArgument;

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    /// A record of words.
    fn put(kind: RecordType, words: &[u64], out: &mut Vec<u8>) {
        let size = HEADER + 8 * words.len();
        out.extend(kind.0.to_le_bytes());
        out.extend([0, 0]);
        out.extend((size as u16).to_le_bytes());
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    #[test]
    fn ids_are_replaced_where_they_are_and_nowhere_else() {
        let records = |id: u64| {
            let mut out = Vec::new();
            put(RecordType::SAMPLE, &[id, 7, 7], &mut out);
            put(RecordType::LOST, &[id, 7], &mut out);
            put(RecordType::LOST_SAMPLES, &[7, 7, id], &mut out);
            put(RecordType::FORK, &[7, 7], &mut out);
            let text = StringArgument {
                site: id,
                argument: 7,
                is_string: true,
                address: Some(7),
            };
            text.encode(&SampleId::default(), IDS, &mut out);
            put(RecordType::SAMPLE, &[8, 7], &mut out);
            out
        };
        let mut map = IdMap::default();
        map.insert(7, 70);
        let mut replaced = records(7);
        map.replace(&mut replaced);
        assert_eq!(replaced, records(70));
        // What is cut is left as it is.
        let mut cut = records(7);
        cut.truncate(12);
        let before = cut.clone();
        map.replace(&mut cut);
        assert_eq!(cut, before);
        assert_eq!(Records::new(&replaced).count(), 6);
    }
}
