//! Reproducible damage.

/// A small generator (xorshift64*): the same seed gives the same numbers everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % end
    }

    /// Overwrites, inserts, removes or repeats a few of the bytes, with a liking for those in `alphabet`.
    pub(crate) fn damage(&mut self, bytes: &mut Vec<u8>, alphabet: &[u8]) {
        for _ in 0..=self.below(4) {
            let byte = match self.below(3) {
                0 => self.next().to_le_bytes()[5],
                _ => alphabet[self.below(alphabet.len())],
            };
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => {
                    let from = bytes[self.below(at + 1).min(at)..at].to_vec();
                    bytes.splice(at..at, from);
                }
                _ => bytes.insert(at, byte),
            }
        }
    }
}
