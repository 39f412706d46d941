//! Checksums of a file's head, stored in the index.
//!
//! perf's format has no checksums for the head and the feature table. The newest node of the [`index`](super::index), which has a
//! checksum itself, ends with:
//!
//! | bytes | |
//! |---|---|
//! | 104 | the file header, with a data size of 0 |
//! | 4 | CRC-32 (IEEE) of the bytes between the header and the first feature: ids and attrs |
//! | 4 | CRC of the feature table |
//! | 4 | number of features |
//! | 4 each | CRC of the feature's body, in the order of the table; 0 for `SAMPLE_TIME` and `COMPRESSED`, which change while recording |
//! | 4 | 0, if the number of features is even |

use crate::perf::cursor::Cursor;
use crate::perf::header::FileHeader;

/// Maximum number of features: there are 256 bits.
const MAX_FEATURES: u32 = 256;

/// The checksums of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeadSums {
    /// Copy of the header, with a data size of 0.
    pub(crate) header: FileHeader,
    /// Checksum of ids and attrs.
    pub(crate) attrs: u32,
    /// Checksum of the feature table.
    pub(crate) table: u32,
    /// Checksum of each feature's body; 0 if it is not checked.
    pub(crate) features: Vec<u32>,
}

impl HeadSums {
    /// Appends the encoded checksums.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.header.encode());
        out.extend(self.attrs.to_le_bytes());
        out.extend(self.table.to_le_bytes());
        out.extend((self.features.len() as u32).to_le_bytes());
        for sum in &self.features {
            out.extend(sum.to_le_bytes());
        }
        // Padding keeps the end of the node at the end of its record, so that a file that is cut there is recognized.
        if self.features.len().is_multiple_of(2) {
            out.extend([0; 4]);
        }
    }

    /// Parses encoded checksums.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        cursor.take(FileHeader::MAGIC.len() + size_of::<u64>())?;
        let body = cursor.take(FileHeader::LEN - FileHeader::PIPE_LEN)?;
        let header = FileHeader::parse(Cursor::new(body))?;
        let (attrs, table) = (cursor.u32()?, cursor.u32()?);
        let count = cursor.u32().filter(|count| *count <= MAX_FEATURES)?;
        let features = (0..count).map(|_| cursor.u32());
        let features = features.collect::<Option<_>>()?;
        if count.is_multiple_of(2) {
            cursor.u32()?;
        }
        Some(Self {
            header,
            attrs,
            table,
            features,
        })
    }

    /// The offset of the first byte in which a header differs from the copy, ignoring the data size; `None` if it does not differ.
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

/// The checksum of a part of the head.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
