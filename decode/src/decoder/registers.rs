//! The registers of a sample, and addresses of operands in memory, which are computed from them.

use usdtrec_format::perf::{Attr, Sample};
use usdtrec_format::{Arch, Extend, Missing, Register};

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

/// Parameters of all operations of a decoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub(super) big_endian: bool,
    /// Whether addresses have 32 bits, independent of the sample's ABI.
    pub(super) narrow: bool,
    /// Index of the stack pointer among the sampled registers.
    pub(super) stack_pointer: Option<usize>,
    pub(super) stack_pointer_name: &'static str,
    /// Number of sampled registers.
    pub(super) registers: usize,
    /// Requested size of the stack copy, bytes.
    pub(super) stack: u32,
    /// Bytes below the stack pointer that a leaf function may use without moving it.
    pub(super) red_zone: u64,
}

impl Machine {
    pub(super) fn new(arch: Option<Arch>, attr: &Attr) -> Self {
        let mask = attr.sample_regs_user;
        Self {
            big_endian: arch.is_some_and(Arch::is_big_endian),
            narrow: arch.is_some_and(|arch| arch.pointer_size() == 4),
            stack_pointer: arch.and_then(|arch| sampled_index(arch, arch.stack_pointer(), mask)),
            stack_pointer_name: arch.map_or("sp", |arch| arch.register_name(arch.stack_pointer())),
            registers: mask.count_ones() as usize,
            stack: attr.sample_stack_user,
            red_zone: arch.map_or(0, Arch::red_zone),
        }
    }
}

/// Index of a register among those sampled by `mask`, which are in ascending bit order; `None` if
/// perf cannot sample it or it is not in the mask.
pub(super) fn sampled_index(arch: Arch, register: Register, mask: u64) -> Option<usize> {
    let bit = 1u64.checked_shl(u32::from(arch.perf_register(register)?))?;
    (mask & bit != 0).then(|| (mask & (bit - 1)).count_ones() as usize)
}

/// A sampled register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    /// Index among the sampled registers.
    pub(super) index: usize,
    pub(super) name: &'static str,
}

/// `base + index * scale + offset`.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) base: Option<Sampled>,
    pub(super) index: Option<Index>,
    pub(super) offset: i64,
    /// Offset from the stack pointer, if that is the only register.
    pub(super) stack_offset: Option<i64>,
}

/// The index part of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    pub(super) register: Sampled,
    pub(super) scale: u8,
    pub(super) extend: Option<Extend>,
}

impl Address {
    /// Computes the address, which wraps at the width of the program's addresses.
    #[inline]
    pub(super) fn evaluate(&self, registers: &Registers<'_>) -> Result<u64, Missing> {
        let mut address = self.offset as u64;
        if let Some(base) = self.base {
            address = address.wrapping_add(registers.get(base.index, base.name)?);
        }
        if let Some(index) = self.index {
            let word = registers.get(index.register.index, index.register.name)?;
            let word = match index.extend {
                None => word,
                Some(Extend::SignWord) => i64::from(word as i32) as u64,
                Some(Extend::ZeroWord) => u64::from(word as u32),
            };
            address = address.wrapping_add(word.wrapping_mul(u64::from(index.scale)));
        }
        Ok(address & registers.address_mask)
    }
}
