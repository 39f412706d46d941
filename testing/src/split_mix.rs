//! Numbers that look random and are the same in every run.

/// The generator SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014), from a seed on.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next number.
    #[must_use]
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// The next number, modulo `bound`, which is not 0.
    #[must_use]
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// The next number, as one from `first` to `last`.
    pub const fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.below(last.abs_diff(first) + 1).cast_signed()
    }

    /// One of some things.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Overwrites, inserts, removes or repeats a few of the bytes, most often with those of `alphabet`.
    pub fn damage(&mut self, bytes: &mut Vec<u8>, alphabet: &[u8]) {
        for _ in 0..=self.below(4) {
            let byte = match self.below(3) {
                0 => self.number() as u8,
                _ => self.choose(alphabet),
            };
            let at = self.below(bytes.len() as u64 + 1) as usize;
            match self.below(4) {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => {
                    let from = self.below(at.max(1) as u64) as usize;
                    let repeated = bytes[from..at].to_vec();
                    bytes.splice(at..at, repeated);
                }
                _ => bytes.insert(at, byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    /// The first numbers of the reference implementation for the seed 1234567.
    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut numbers = SplitMix64(1_234_567);
        assert_eq!(numbers.number(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.number(), 3_203_168_211_198_807_973);
    }
}
