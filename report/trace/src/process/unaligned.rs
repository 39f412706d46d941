//! Unaligned `u64`.

/// A time or an address as two words, aligned to 4 bytes: tables with many entries are a fifth smaller.
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
