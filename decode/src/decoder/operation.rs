//! Operations that decode an argument from registers and stack.

use usdtrec_format::{Missing, Value};

use super::constant_address::StringEvidence;
use super::registers::{Address, Registers, Sampled};
use super::stack_copy::Stack;

/// The operation of an argument.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Index of the argument.
    pub(super) slot: usize,
    pub(super) source: BitSource,
    pub(super) shape: Shape,
    /// What says that it is the address of a string; `None` if it is not.
    pub(super) string: Option<StringEvidence>,
}

/// Source of the bits of a value.
#[derive(Clone, Debug)]
pub(super) enum BitSource {
    /// The bits of a register from bit `shift` on.
    Register { register: Sampled, shift: u8 },
    /// Memory.
    Memory(Address),
    /// The register with the lower half of a value; the note does not name the other register.
    LowerHalf(Sampled),
}

/// Type of the bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An unsigned integer of this many bytes (1, 2, 4 or 8).
    Unsigned(u8),
    /// A signed integer of this many bytes (1, 2, 4 or 8).
    Signed(u8),
    /// A float of 4 bytes.
    Float32,
    /// A float of 8 bytes.
    Float64,
    /// The lowest 8 bytes of a value of this many bytes.
    Wide(u8),
}

impl Operation {
    /// The argument's value in a sample.
    #[inline]
    pub(super) fn value(&self, registers: &Registers<'_>, stack: &Stack<'_>) -> Value {
        let bits = match &self.source {
            BitSource::Register { register, shift } => registers
                .get(register.index, register.name)
                .map(|word| word >> shift),
            BitSource::Memory(address) => stack.read(address, self.shape.bytes(), registers),
            BitSource::LowerHalf(register) => registers
                .get(register.index, register.name)
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
    /// Number of bytes to read.
    pub(super) const fn bytes(self) -> u8 {
        match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) => bytes,
            Self::Float32 => 4,
            Self::Float64 | Self::Wide(_) => 8,
        }
    }

    /// The value of the lowest bits, truncated to the size and sign-extended.
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
