//! Checksums of a file's head, in the index.
//!
//! perf has none for what stands before the data and for the feature table. The newest node of the [`index`](super::index),
//! which has its own, ends with:
//!
//! | bytes | |
//! |---|---|
//! | 104 | the file header, with a data size of 0 |
//! | 4 | CRC-32 (IEEE) of what lies between the header and the first feature: ids and attrs |
//! | 4 | CRC of the feature table |
//! | 4 | features |
//! | 4 each | CRC of the feature's body, in the order of the table; 0 for `SAMPLE_TIME` and `COMPRESSED`, which change while recording |
//! | 4 | 0, if the number of features is even |

use crate::perf::cursor::Cursor;
use crate::perf::header::FileHeader;

/// Most features: there are 256 bits.
const MAX_FEATURES: u32 = 256;

/// The checksums of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeadSums {
    /// The header; its data size is 0.
    pub(crate) header: FileHeader,
    /// Of ids and attrs.
    pub(crate) attrs: u32,
    /// Of the feature table.
    pub(crate) table: u32,
    /// Of each feature's body; 0 where it is not checked.
    pub(crate) features: Vec<u32>,
}

impl HeadSums {
    /// Appends them.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.header.encode());
        out.extend(self.attrs.to_le_bytes());
        out.extend(self.table.to_le_bytes());
        out.extend((self.features.len() as u32).to_le_bytes());
        for sum in &self.features {
            out.extend(sum.to_le_bytes());
        }
        // The record ends where its checksum does, so that a file that is cut there is seen to be.
        if self.features.len().is_multiple_of(2) {
            out.extend([0; 4]);
        }
    }

    /// Parses them.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        cursor.take(FileHeader::MAGIC.len() + size_of::<u64>())?;
        let body = cursor.take(FileHeader::LEN - FileHeader::PIPE_LEN)?;
        let header = FileHeader::parse(Cursor::new(body))?;
        let (attrs, table) = (cursor.u32()?, cursor.u32()?);
        let count = cursor.u32().filter(|count| *count <= MAX_FEATURES)?;
        Some(Self {
            header,
            attrs,
            table,
            features: (0..count).map(|_| cursor.u32()).collect::<Option<_>>()?,
        })
    }

    /// Where a header differs from this one, whatever its data size is. `None` if it does not.
    pub(crate) fn first_difference(&self, header: &FileHeader) -> Option<u64> {
        let found = FileHeader {
            data: crate::perf::header::Section {
                size: self.header.data.size,
                ..header.data
            },
            ..*header
        };
        let (written, found) = (self.header.encode(), found.encode());
        let differs = written.iter().zip(&found).position(|(a, b)| a != b);
        differs.map(|at| at as u64)
    }
}

/// The checksum of ids and attrs, or of a feature's body.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
