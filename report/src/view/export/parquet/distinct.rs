//! Which number each different value of a column has.

use foldhash::HashMap;

/// Different values that are always kept apart: so many take little memory.
const FEW: usize = 1 << 10;
/// Different values at most. Numbers of more take as many bytes as most values.
const MOST: usize = 1 << 16;
/// Bytes in memory of a value besides itself, about.
const OF_EACH: usize = 32;

/// Numbers of different values, from 0.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    numbers: HashMap<i64, u32>,
    bytes: HashMap<Box<[u8]>, u32>,
    /// The number of the last value.
    last: u32,
}

impl Distinct {
    /// The number of the last value: the next one mostly is the same.
    #[inline]
    pub(crate) const fn last(&self) -> u32 {
        self.last
    }

    /// The number of a value; `push` is called if it is new.
    pub(crate) fn number(&mut self, value: i64, push: impl FnOnce()) -> u32 {
        let next = self.numbers.len() as u32;
        self.last = *self.numbers.entry(value).or_insert_with(|| {
            push();
            next
        });
        self.last
    }

    /// The number of bytes; `push` is called if they are new.
    pub(crate) fn number_of_bytes(&mut self, value: &[u8], push: impl FnOnce()) -> u32 {
        if let Some(&known) = self.bytes.get(value) {
            self.last = known;
            return known;
        }
        push();
        self.last = self.bytes.len() as u32;
        self.bytes.insert(value.into(), self.last);
        self.last
    }

    /// Whether values of so many rows are too different: half of them, or too many.
    #[inline]
    pub(crate) fn is_too_much(&self, rows: usize) -> bool {
        let count = self.numbers.len().max(self.bytes.len());
        count >= FEW && (count >= MOST || count * 2 > rows)
    }

    /// Bytes in memory besides the values, about.
    pub(crate) fn size(&self) -> usize {
        (self.numbers.len() + self.bytes.len()) * OF_EACH
    }
}
