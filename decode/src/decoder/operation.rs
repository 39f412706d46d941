//! Operations: what a decoder does for one argument of a sample.

use usdtrec_format::{Missing, Value};

use super::address::{Address, Sampled};
use super::memory::Stack;
use super::registers::Registers;

/// One argument that depends on the sample.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Index of the argument.
    pub(super) slot: usize,
    pub(super) source: Source,
    pub(super) shape: Shape,
}

/// Where the bits come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Bits of a register from `shift` on.
    Register { register: Sampled, shift: u8 },
    /// Memory.
    Memory(Address),
    /// The lower half of a pair whose other register the note does not name.
    LowerHalf(Sampled),
}

/// What the bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An unsigned integer of so many bytes (1, 2, 4 or 8).
    Unsigned(u8),
    /// A signed integer of so many bytes (1, 2, 4 or 8).
    Signed(u8),
    /// A float of 4 bytes.
    Float32,
    /// A float of 8 bytes.
    Float64,
    /// The lowest 8 bytes of a value of so many.
    Wide(u8),
}

impl Operation {
    /// The argument's value in a sample.
    #[inline]
    pub(super) fn value(&self, registers: &Registers<'_>, stack: &Stack<'_>) -> Value {
        let bits =
            match &self.source {
                Source::Register { register, shift } => registers
                    .get(register.place, register.name)
                    .map(|word| word >> shift),
                Source::Memory(address) => stack.read(address, self.shape.bytes(), registers),
                Source::LowerHalf(register) => registers
                    .get(register.place, register.name)
                    .and_then(|word| {
                        let bytes = self.shape.bytes();
                        Err(Missing::Pair(bytes, cut(word, bytes)))
                    }),
            };
        match bits {
            Ok(bits) => self.shape.value(bits),
            Err(missing) => Value::Missing(missing),
        }
    }
}

impl Shape {
    /// Bytes that the value has where it lives.
    pub(super) const fn bytes(self) -> u8 {
        match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) => bytes,
            Self::Float32 => 4,
            Self::Float64 | Self::Wide(_) => 8,
        }
    }

    /// The value of the lowest bits, cut to the size and sign-extended.
    #[inline]
    pub(super) const fn value(self, bits: u64) -> Value {
        match self {
            Self::Unsigned(bytes) => Value::Unsigned(cut(bits, bytes)),
            Self::Signed(bytes) => {
                let unused = 64 - 8 * bytes as u32;
                Value::Signed((bits << unused) as i64 >> unused)
            }
            Self::Float32 => Value::Float32(f32::from_bits(bits as u32)),
            Self::Float64 => Value::Float64(f64::from_bits(bits)),
            Self::Wide(bytes) => Value::Missing(Missing::Wide(bytes, bits)),
        }
    }
}

const fn cut(bits: u64, bytes: u8) -> u64 {
    let unused = 64 - 8 * bytes as u32;
    bits << unused >> unused
}
