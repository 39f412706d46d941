//! Parquet's encoding of small numbers: runs of equal ones, and groups of eight that are packed by bits.
//!
//! ```text
//! run     varint (count << 1)         the number in the bytes that its bits take
//! packed  varint (groups << 1 | 1)    eight numbers a group, the first one in the lowest bits
//! ```

use crate::view::export::parquet::runs::Run;

/// Numbers in a group.
const GROUP: usize = 8;
/// Numbers that are packed under one header: it takes one byte then.
const MOST_WAITING: usize = 63 * GROUP;

/// Appends numbers to bytes.
pub(crate) struct HybridEncoder<'o> {
    out: &'o mut Vec<u8>,
    /// Bits of a number.
    width: u32,
    /// The last run, which may go on.
    open: Run,
    /// Numbers that are to be packed.
    waiting: Vec<u32>,
}

impl<'o> HybridEncoder<'o> {
    /// `most` is the greatest number.
    pub(crate) fn new(out: &'o mut Vec<u8>, most: u32) -> Self {
        Self {
            out,
            width: bits(most),
            open: Run {
                number: 0,
                count: 0,
            },
            waiting: Vec::with_capacity(MOST_WAITING),
        }
    }

    pub(crate) fn put(&mut self, run: Run) {
        if run.number == self.open.number {
            self.open.count += run.count;
            return;
        }
        self.close();
        self.open = run;
    }

    /// Writes the last run.
    fn close(&mut self) {
        let Run { number, mut count } = self.open;
        // A group that has begun must be filled.
        while count > 0 && !(self.waiting.len().is_multiple_of(GROUP) && count as usize >= GROUP) {
            self.waiting.push(number);
            count -= 1;
            if self.waiting.len() == MOST_WAITING {
                self.pack();
            }
        }
        if count > 0 {
            self.pack();
            self.varint(count << 1);
            let bytes = number.to_le_bytes();
            let bytes = bytes.iter().take(self.width.div_ceil(8) as usize);
            self.out.extend(bytes);
        }
    }

    /// Writes the numbers that wait.
    fn pack(&mut self) {
        let groups = self.waiting.len().div_ceil(GROUP);
        if groups == 0 {
            return;
        }
        self.waiting.resize(groups * GROUP, 0);
        self.varint((groups as u32) << 1 | 1);
        let (mut word, mut filled) = (0_u64, 0);
        for &number in &self.waiting {
            word |= u64::from(number) << filled;
            filled += self.width;
            while filled >= 8 {
                self.out.push(word as u8);
                word >>= 8;
                filled -= 8;
            }
        }
        self.waiting.clear();
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) {
        self.close();
        self.pack();
    }
}

/// Bits of numbers up to this one.
pub(crate) const fn bits(most: u32) -> u32 {
    u32::BITS - most.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(most: u32, runs: &[(u32, u32)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = HybridEncoder::new(&mut out, most);
        for &(number, count) in runs {
            encoder.put(Run { number, count });
        }
        encoder.finish();
        out
    }

    /// Reads what was written, by the format's definition.
    fn decoded(mut bytes: &[u8], most: u32) -> Vec<u32> {
        let width = bits(most) as usize;
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            let mut header = 0_u64;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                bytes = rest;
                header |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            let count = (header >> 1) as usize;
            if header & 1 == 0 {
                let (number, rest) = bytes.split_at(width.div_ceil(8));
                bytes = rest;
                let number = number
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u32::from(*byte));
                numbers.extend(vec![number; count]);
                continue;
            }
            let (packed, rest) = bytes.split_at(count * width);
            bytes = rest;
            for at in 0..count * GROUP {
                let bit = |bit: usize| u32::from(packed[bit / 8] >> (bit % 8) & 1);
                let number = (0..width).map(|place| bit(at * width + place) << place);
                numbers.push(number.sum());
            }
        }
        numbers
    }

    #[test]
    fn the_example_of_the_format() {
        let numbers: Vec<(u32, u32)> = (0..8).map(|number| (number, 1)).collect();
        let packed = [0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(encoded(7, &numbers), packed);
        assert_eq!(encoded(1, &[(1, 100)]), [0xc8, 0x01, 1]);
        assert_eq!(encoded(0, &[(0, 5)]), [0x03], "bits of nothing");
    }

    #[test]
    fn runs_of_any_lengths_are_read_back() {
        for most in [0, 1, 5, 255, 256, 70_000] {
            let mut state = 1_u32;
            let mut below = |limit: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % limit
            };
            for length in [1, 3, 9, 40, 700] {
                let runs: Vec<(u32, u32)> = (0..300)
                    .map(|_| (below(most + 1), 1 + below(length)))
                    .collect();
                let all = runs
                    .iter()
                    .flat_map(|&(number, count)| vec![number; count as usize]);
                let all: Vec<u32> = all.collect();
                let read = decoded(&encoded(most, &runs), most);
                assert_eq!(read[..all.len()], all, "{most} {length}");
                assert!(read.len() < all.len() + GROUP);
            }
        }
    }
}
