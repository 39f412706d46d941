//! 64-bit numbers that take no more room between others than their 8 bytes.

/// A time or an address as two words, which need no alignment to 8 bytes: of entries that are very many it saves a fifth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackedU64 {
    // In this order, which is that of numbers.
    high: u32,
    low: u32,
}

impl From<u64> for PackedU64 {
    fn from(number: u64) -> Self {
        Self {
            high: (number >> 32) as u32,
            low: number as u32,
        }
    }
}

impl From<PackedU64> for u64 {
    fn from(words: PackedU64) -> Self {
        Self::from(words.high) << 32 | Self::from(words.low)
    }
}
