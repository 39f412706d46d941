//! Values of a column in memory.

use crate::view::export::dataset_table::ColumnType;

/// The values that are not null.
#[derive(Debug)]
pub(crate) enum ColumnValues {
    Int32(Vec<i32>),
    /// Unsigned integers as the signed ones of the same bits.
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    Bytes(BytesList),
}

/// Texts or bytes, one after the other.
#[derive(Debug, Default)]
pub(crate) struct BytesList {
    pub(crate) bytes: Vec<u8>,
    /// Where each of them ends.
    pub(crate) ends: Vec<usize>,
}

impl ColumnValues {
    pub(crate) const fn new(kind: ColumnType) -> Self {
        match kind {
            ColumnType::Int32 => Self::Int32(Vec::new()),
            ColumnType::Int64 | ColumnType::UInt64 => Self::Int64(Vec::new()),
            ColumnType::Float64 => Self::Float64(Vec::new()),
            ColumnType::Bool => Self::Bool(Vec::new()),
            ColumnType::Text | ColumnType::Binary => Self::Bytes(BytesList {
                bytes: Vec::new(),
                ends: Vec::new(),
            }),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Int32(values) => values.clear(),
            Self::Int64(values) => values.clear(),
            Self::Float64(values) => values.clear(),
            Self::Bool(values) => values.clear(),
            Self::Bytes(BytesList { bytes, ends }) => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Bytes(values) => values.ends.len(),
        }
    }
}

impl BytesList {
    #[inline]
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|last| self.ends.get(last));
        self.bytes.get(start.copied().unwrap_or(0)..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let value = self.bytes.get(start..end);
            start = end;
            value
        })
    }
}
