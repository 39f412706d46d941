//! The registers of a sample.

use usdtrec_format::Missing;
use usdtrec_format::perf::Sample;

use super::machine::Machine;

/// `PERF_SAMPLE_REGS_ABI_NONE`: the sample has no registers (the thread had no user state).
const ABI_NONE: u64 = 0;
/// `PERF_SAMPLE_REGS_ABI_32`: the registers are those of a 32-bit program.
const ABI_32: u64 = 1;

/// The registers of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    /// Mask of address bits: 32 or 64 bits.
    pub(super) address_mask: u64,
    present: bool,
}

impl<'a> Registers<'a> {
    #[inline]
    pub(super) fn new(sample: &Sample<'a>, machine: &Machine) -> Self {
        let narrow = machine.narrow || sample.regs_abi == ABI_32;
        Self {
            bytes: sample.regs,
            big_endian: machine.big_endian,
            address_mask: if narrow {
                u64::from(u32::MAX)
            } else {
                u64::MAX
            },
            present: sample.regs_abi != ABI_NONE || machine.registers == 0,
        }
    }

    /// The register with this index among the sampled ones, truncated to the width of the program's registers.
    #[inline]
    pub(super) fn get(&self, index: usize, name: &'static str) -> Result<u64, Missing> {
        if !self.present {
            return Err(Missing::Register(name));
        }
        let word = self
            .bytes
            .get(index * 8..)
            .and_then(<[u8]>::first_chunk::<8>)
            .ok_or(Missing::Truncated)?;
        let value = if self.big_endian {
            u64::from_be_bytes(*word)
        } else {
            u64::from_le_bytes(*word)
        };
        Ok(value & self.address_mask)
    }
}
