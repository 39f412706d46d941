//! The copy of the stack in a sample.
//!
//! Whether an operand is on the stack is determined by its address, not by the name of its base
//! register: compilers copy stack addresses into other registers, and use the frame pointer for other things.

use usdtrec_format::Missing;
use usdtrec_format::perf::Sample;

use super::registers::{Address, Machine, Registers};

/// Distance above the stack pointer up to which an address is considered stack, bytes: the usual stack limit.
const STACK_REACH: u64 = 8 << 20;

/// The copied stack of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stack<'a> {
    bytes: &'a [u8],
    pointer: Option<u64>,
    pointer_name: &'static str,
    big_endian: bool,
    asked: u32,
    red_zone: u64,
}

impl<'a> Stack<'a> {
    #[inline]
    pub(super) fn new(sample: &Sample<'a>, registers: &Registers<'_>, machine: &Machine) -> Self {
        let name = machine.stack_pointer_name;
        let pointer = machine
            .stack_pointer
            .and_then(|index| registers.get(index, name).ok());
        Self {
            bytes: sample.stack,
            pointer,
            pointer_name: name,
            big_endian: machine.big_endian,
            asked: machine.stack,
            red_zone: machine.red_zone,
        }
    }

    /// Reads `size` bytes (1 to 8) at an operand's address.
    #[inline]
    pub(super) fn read(
        &self,
        address: &Address,
        size: u8,
        registers: &Registers<'_>,
    ) -> Result<u64, Missing> {
        let offset = match (self.pointer, address.stack_offset) {
            // Operands relative to the stack pointer do not need its value.
            (None, Some(offset)) => {
                u64::try_from(offset).map_err(|_| Missing::Register(self.pointer_name))?
            }
            (None, None) => return Err(Missing::Memory(address.evaluate(registers)?)),
            (Some(pointer), _) => {
                address.evaluate(registers)?.wrapping_sub(pointer) & registers.address_mask
            }
        };
        self.at(offset, size)
            .ok_or_else(|| self.outside(offset, size, registers.address_mask))
    }

    /// The integer of `size` bytes at an offset from the stack pointer.
    #[inline]
    fn at(&self, offset: u64, size: u8) -> Option<u64> {
        let start = usize::try_from(offset).ok()?;
        let bytes = self
            .bytes
            .get(start..start.checked_add(usize::from(size))?)?;
        let mut word = [0; 8];
        Some(if self.big_endian {
            word.get_mut(8 - bytes.len()..)?.copy_from_slice(bytes);
            u64::from_be_bytes(word)
        } else {
            word.get_mut(..bytes.len())?.copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
    }

    /// Why the bytes at an offset from the stack pointer are missing.
    #[cold]
    fn outside(&self, offset: u64, size: u8, mask: u64) -> Missing {
        let Some(pointer) = self.pointer else {
            return Missing::Register(self.pointer_name);
        };
        let address = pointer.wrapping_add(offset) & mask;
        let below = pointer.wrapping_sub(address) & mask;
        if below != 0 && below <= self.red_zone.max(u64::from(size) - 1) {
            Missing::RedZone(address)
        } else if self.asked != 0 && offset < STACK_REACH {
            Missing::BeyondStack(address, self.bytes.len() as u32)
        } else {
            Missing::Memory(address)
        }
    }
}
