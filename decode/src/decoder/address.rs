//! Addresses of operands in memory, computed from the registers of a sample.

use usdtrec_format::{Extend, Missing};

use super::registers::Registers;

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
