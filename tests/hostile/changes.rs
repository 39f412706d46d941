//! Changes of bytes, each the same again for the same number.

use usdtrec_testing::SplitMix64;

/// Numbers that look random.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        let mut generator = SplitMix64(self.0);
        let number = generator.number();
        self.0 = generator.0;
        number
    }

    /// One of those below a number.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// One change somewhere in the bytes: more often at their beginning and end, where what the rest depends on is.
pub(crate) fn change(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let len = bytes.len();
    let at = match numbers.below(3) {
        0 => numbers.below(len.min(1024)),
        1 => len - 1 - numbers.below(len.min(4096)),
        _ => numbers.below(len),
    };
    change_at(bytes, at, numbers);
}

/// One change at a place in the bytes.
pub(crate) fn change_at(bytes: &mut Vec<u8>, at: usize, numbers: &mut Numbers) {
    let len = bytes.len();
    let end = (at + 1 + numbers.below(64)).min(len);
    match numbers.below(8) {
        0 | 1 => bytes[at] ^= 1 << numbers.below(8),
        2 => bytes[at] = numbers.next() as u8,
        3 => {
            let extremes = [0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 63, 0x7fff_ffff];
            let word = extremes[numbers.below(extremes.len())].to_le_bytes();
            let size = [2, 4, 8][numbers.below(3)].min(len - at);
            bytes[at..at + size].copy_from_slice(&word[..size]);
        }
        4 => bytes[at..end].fill(0),
        5 => {
            // A piece from elsewhere.
            let from = numbers.below(len - (end - at));
            bytes.copy_within(from..from + (end - at), at);
        }
        6 => drop(bytes.drain(at..end)),
        _ => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}
