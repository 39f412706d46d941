//! Types of a schema: how the bits of an operand are taken.

use usdtrec_format::Value;
use usdtrec_format::schema::{Argument, ArgumentType};

use super::Decoder;
use super::length::lengths;
use super::operation::{Shape, Source};
use super::raw::RawOperation;

impl Decoder {
    /// Takes the arguments as a schema says.
    ///
    /// Where the value lives, its size and whether it is a float, the note knows better. The schema says whether an
    /// integer is signed, and that it has fewer bytes than the operand, as compilers widen: then the lower ones
    /// are taken. What the schema claims beyond that changes nothing here.
    #[must_use]
    pub fn typed(mut self, arguments: &[Argument]) -> Self {
        for operation in &mut self.operations {
            let Some(kind) = kind_of(arguments, operation.slot) else {
                continue;
            };
            let before = operation.shape.bytes();
            operation.shape = operation.shape.typed(kind);
            if let (Source::Memory(address), true) =
                (&mut operation.source, self.machine.big_endian)
            {
                // The lower bytes are the last ones.
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
                // A constant is an int, whatever the argument is.
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

fn kind_of(arguments: &[Argument], slot: usize) -> Option<&ArgumentType> {
    arguments.get(slot)?.kind.as_ref()
}

impl Shape {
    /// The shape that a value of this shape has if it is of a type.
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
