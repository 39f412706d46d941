//! The registers of a sample that unwinding starts with.

use crate::machine::column;
use crate::registers::Registers;
use usdtrec_format::perf::{Attr, Sample};
use usdtrec_format::{Arch, Register};

/// Places of the registers among those of an event's samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterPlaces(Vec<RegisterPlace>);

/// The place of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RegisterPlace {
    /// Its column in unwind tables.
    column: u16,
    /// Its number among the sampled words.
    at: usize,
}

impl RegisterPlaces {
    /// The registers that samples of an event have and unwind tables name.
    #[must_use]
    pub fn from_attr(attr: &Attr, arch: Arch) -> Self {
        let mask = attr.sample_regs_user;
        let places = (0..=u8::MAX).map(Register).filter_map(|register| {
            let bit = arch.perf_register(register).filter(|bit| *bit < 64)?;
            let below = mask & ((1 << bit) - 1);
            (mask >> bit & 1 != 0).then_some(RegisterPlace {
                column: column(arch, register)?,
                at: below.count_ones() as usize,
            })
        });
        Self(places.collect())
    }

    /// The registers of a sample; those that it lacks are unknown.
    #[must_use]
    pub fn read(&self, sample: &Sample<'_>) -> Registers {
        let (words, _) = sample.regs.as_chunks::<8>();
        let mut registers = Registers::default();
        for place in &self.0 {
            let word = words.get(place.at).map(|word| u64::from_le_bytes(*word));
            registers.set(place.column, word);
        }
        registers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(mask: u64, arch: Arch) -> RegisterPlaces {
        let attr = Attr {
            sample_regs_user: mask,
            ..Attr::default()
        };
        RegisterPlaces::from_attr(&attr, arch)
    }

    #[test]
    fn registers_are_found_among_the_others() {
        // bx, bp, sp, ip, and flags, which no table names.
        let places = places(0b11_1100_0010, Arch::X86_64);
        let words: Vec<u8> = (1_u64..=5).flat_map(|word| word.to_le_bytes()).collect();
        let registers = |bytes: usize| {
            let sample = Sample {
                regs: &words[..bytes],
                ..Sample::default()
            };
            let registers = places.read(&sample);
            [3, 6, 7, 16, 0].map(|column| registers.get(column))
        };
        assert_eq!(registers(40), [Some(1), Some(2), Some(3), Some(4), None]);
        assert_eq!(registers(31), [Some(1), Some(2), Some(3), None, None]);
        assert_eq!(registers(0), [None; 5]);
    }

    #[test]
    fn each_machine_has_its_own() {
        assert_eq!(places(u64::MAX, Arch::X86_64).0.len(), 17);
        assert_eq!(places(u64::MAX, Arch::Aarch64).0.len(), 33);
        assert_eq!(places(u64::MAX, Arch::I386).0, []);
    }
}
