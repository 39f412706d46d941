//! That an argument of a site is a string, as its hits have shown.
//!
//! Notes do not say which arguments are strings, and an empty string may be any zero in memory. So the recorder says once other hits have shown
//! what the argument is. This is a record of type 65, which perf ignores, among the records of processes. It holds for all hits, also for
//! those before it:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTTEXT` |
//! | 8 | 8 | sample id of the site |
//! | 16 | 4 | index of the argument |
//! | 20 | 4 | 1 if it is a string, 0 if it is not always one |
//! | 24 | 8 | the address at which it is a string; 0 for all (others are in older traces) |
//! | 32 | | zeros, to 80 bytes of the whole record |
//! | last | | sample id; its time is that of the first hit of the site, so that readers of any hits have the record |
//!
//! A later record about the same argument and address replaces an earlier one.

use super::own_record::{Magic, OwnFields, is_own, own_fields};
use crate::perf::record::RecordBuilder;
use crate::perf::{RawRecord, RecordType, SampleId, SampleType};

pub(super) const MAGIC: Magic = *b"USDTTEXT";
/// Zeros after the fields, bytes, so that the record has 80: perf 6.1 reads so many before it ignores it.
const SPARE: usize = 40;

/// What hits of a site have shown of one of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringArgument {
    /// A sample id of the site.
    pub site: u64,
    /// Index of the argument, from 0.
    pub argument: u32,
    /// Whether it is a string, so that short ones are strings, too.
    pub is_string: bool,
    /// The address for which this holds; `None` for all.
    pub address: Option<u64>,
}

impl StringArgument {
    /// Whether this is such a record, which may be too short.
    #[must_use]
    pub fn is(record: &RawRecord<'_>) -> bool {
        is_own(record, MAGIC)
    }

    /// Parses a record; `None` if it is another one or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        let OwnFields { mut cursor, .. } = own_fields(record, MAGIC, sample_type)?;
        Some(Self {
            site: cursor.u64()?,
            argument: cursor.u32()?,
            is_string: cursor.u32()? != 0,
            address: Some(cursor.u64()?).filter(|address| *address != 0),
        })
    }

    /// Appends the record.
    pub fn encode(&self, id: &SampleId, sample_type: SampleType, out: &mut Vec<u8>) {
        let mut record = RecordBuilder::new(out, RecordType::HEADER_EVENT_TYPE, 0);
        record.bytes(&MAGIC);
        record.bytes(&self.site.to_le_bytes());
        record.bytes(&self.argument.to_le_bytes());
        record.bytes(&u32::from(self.is_string).to_le_bytes());
        record.bytes(&self.address.unwrap_or(0).to_le_bytes());
        record.bytes(&[0; SPARE]);
        record.finish(id, sample_type);
    }
}

#[cfg(test)]
mod tests {
    use super::StringArgument;
    use crate::perf::{Records, SampleId, SampleType};

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    fn encoded(text: StringArgument) -> Vec<u8> {
        let mut out = Vec::new();
        text.encode(&SampleId::default(), IDS, &mut out);
        out
    }

    const ALL: StringArgument = StringArgument {
        site: 7,
        argument: 1,
        is_string: true,
        address: None,
    };

    #[test]
    fn records_are_read_as_they_were_written() {
        let one = StringArgument {
            is_string: false,
            address: Some(0x7ffd_0000_1234),
            ..ALL
        };
        for text in [ALL, one] {
            let bytes = encoded(text);
            assert!(bytes.len() >= 80 && bytes.len().is_multiple_of(8));
            let record = Records::new(&bytes).next().expect("a record");
            assert_eq!(StringArgument::parse(&record, IDS), Some(text));
        }
    }

    #[test]
    fn short_records_are_none() {
        let bytes = encoded(ALL);
        for size in (8..bytes.len()).step_by(8) {
            let mut cut = bytes[..size].to_vec();
            cut[6..8].copy_from_slice(&(size as u16).to_le_bytes());
            let record = Records::new(&cut).next().expect("a record");
            let needed = 8 + 32 + SampleId::len(IDS);
            let read = StringArgument::parse(&record, IDS);
            assert_eq!(read.is_some(), size >= needed, "{size} bytes");
        }
    }
}
