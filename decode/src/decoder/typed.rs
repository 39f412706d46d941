//! Applies the types of a schema to a decoder.

use usdtrec_format::Value;
use usdtrec_format::schema::{Argument, ArgumentType};

use super::Decoder;
use super::constant_address::StringEvidence;
use super::operation::{BitSource, Shape};
use super::raw::RawOperation;
use super::string_length::lengths;

impl Decoder {
    /// Applies the types of a schema.
    ///
    /// Location, size and float come from the note. The schema determines whether an
    /// integer is signed, and if it is narrower than the operand, because compilers widen, the lower bytes
    /// are used. Other differences are ignored.
    #[must_use]
    pub fn typed(mut self, arguments: &[Argument]) -> Self {
        for constant in &mut self.constants {
            constant.string = evidence(arguments.get(constant.slot), constant.string);
        }
        for operation in &mut self.operations {
            operation.string = evidence(arguments.get(operation.slot), operation.string);
            let Some(kind) = kind_of(arguments, operation.slot) else {
                continue;
            };
            let before = operation.shape.bytes();
            operation.shape = operation.shape.typed(kind);
            if let (BitSource::Memory(address), true) =
                (&mut operation.source, self.machine.big_endian)
            {
                // The lower bytes have the higher addresses.
                let cut = i64::from(before - operation.shape.bytes());
                address.offset = address.offset.wrapping_add(cut);
                address.stack_offset = address.stack_offset.map(|at| at.wrapping_add(cut));
            }
        }
        for operation in &mut self.raw {
            if let Some(kind) = kind_of(arguments, operation.slot()) {
                operation.typed(kind);
            }
        }
        let listed = self.raw.iter().any(RawOperation::is_listed);
        self.lengths = lengths(arguments, listed);
        for (slot, value) in self.fixed.iter_mut().enumerate() {
            let bits = match value {
                Value::Unsigned(number) => *number,
                Value::Signed(number) => number.cast_unsigned(),
                _ => continue,
            };
            if let Some(kind) = kind_of(arguments, slot) {
                // The note's size of a constant is that of an int, independent of the argument's type.
                let shape = match value {
                    Value::Signed(_) => Shape::Signed(8),
                    _ => Shape::Unsigned(8),
                };
                *value = shape.typed(kind).value(bits);
            }
        }
        self
    }
}

/// What says that an argument is the address of a string, with its type.
fn evidence(known: Option<&Argument>, string: Option<StringEvidence>) -> Option<StringEvidence> {
    match known.and_then(|known| known.kind.as_ref()) {
        Some(ArgumentType::String(None)) => string.map(|_| StringEvidence::Declared),
        Some(_) => None,
        None => string.filter(|_| known.is_none_or(|known| known.labels.is_none())),
    }
}

fn kind_of(arguments: &[Argument], slot: usize) -> Option<&ArgumentType> {
    arguments.get(slot)?.kind.as_ref()
}

impl Shape {
    /// The shape of a value after applying a type.
    pub(super) fn typed(self, kind: &ArgumentType) -> Self {
        let (Self::Unsigned(bytes) | Self::Signed(bytes)) = self else {
            return self;
        };
        match kind {
            ArgumentType::Integer {
                bytes: claimed,
                signed,
            } => {
                let bytes = bytes.min(*claimed);
                if *signed {
                    Self::Signed(bytes)
                } else {
                    Self::Unsigned(bytes)
                }
            }
            kind if kind.is_address() => Self::Unsigned(bytes),
            _ => self,
        }
    }
}
