//! The header of a perf.data file (`struct perf_file_header`).
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `PERFILE2` (reversed in a file of the other byte order) |
//! | 8 | 8 | size of this header: 104 (16 in pipe mode, where records follow) |
//! | 16 | 8 | size of an entry of the attrs: size of the attr plus 16 |
//! | 24 | 16 | attrs: entries of {attr, offset 8 and size 8 of its ids} |
//! | 40 | 16 | data: records |
//! | 56 | 16 | event types, not used |
//! | 72 | 32 | features: 256 bits, the lowest first |

use super::cursor::Cursor;

/// `struct perf_file_section`: offset 8, size 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// File offset.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
}

impl Section {
    /// Bytes of a section in a file.
    pub(crate) const LEN: usize = 8 + 8;

    /// The next section of the cursor.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            offset: cursor.u64()?,
            size: cursor.u64()?,
        })
    }

    /// Appends it.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend(self.offset.to_le_bytes());
        out.extend(self.size.to_le_bytes());
    }

    /// File offset after the last byte, at most `u64::MAX`.
    pub(crate) const fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The fields of the file header after magic and size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Bytes of one entry in `attrs`.
    pub(crate) attr_size: u64,
    /// Entries of attr and section of its ids.
    pub(crate) attrs: Section,
    /// Records.
    pub(crate) data: Section,
    /// Feature bits: the sections in the table after the data.
    pub(crate) features: [u64; 4],
}

impl FileHeader {
    /// First bytes of a file.
    pub(crate) const MAGIC: [u8; 8] = *b"PERFILE2";
    /// First bytes of a file of the other byte order.
    pub(crate) const MAGIC_SWAPPED: [u8; 8] = *b"2ELIFREP";
    /// Bytes of the header, magic and size included.
    pub(crate) const LEN: usize = 8 + 8 + 8 + 3 * Section::LEN + 32;
    /// Value of the size field in pipe mode.
    pub(crate) const PIPE_LEN: usize = 8 + 8;
    /// File offset of `attrs`.
    pub(crate) const ATTRS_OFFSET: usize = 24;
    /// File offset of the size of `data`.
    pub(crate) const DATA_SIZE_OFFSET: u64 = 48;
    /// File offset of the feature bits.
    pub(crate) const FEATURES_OFFSET: u64 = 72;

    /// Whether the attrs are in the data, because events were added while recording.
    pub(crate) const fn has_late_attrs(&self) -> bool {
        self.attrs.offset >= self.data.offset && self.data.offset != 0
    }

    /// Parses the fields after magic and size.
    pub(crate) fn parse(mut cursor: Cursor<'_>) -> Option<Self> {
        let attr_size = cursor.u64()?;
        let attrs = Section::parse(&mut cursor)?;
        let data = Section::parse(&mut cursor)?;
        Section::parse(&mut cursor)?;
        let mut features = [0; 4];
        for word in &mut features {
            *word = cursor.u64()?;
        }
        Some(Self {
            attr_size,
            attrs,
            data,
            features,
        })
    }

    /// The whole header.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Self::MAGIC.to_vec();
        out.extend((Self::LEN as u64).to_le_bytes());
        out.extend(self.attr_size.to_le_bytes());
        self.attrs.encode(&mut out);
        self.data.encode(&mut out);
        Section::default().encode(&mut out);
        for word in self.features {
            out.extend(word.to_le_bytes());
        }
        out
    }
}
