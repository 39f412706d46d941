//! Where a schema and a note do not agree.

use std::fmt;

use super::{Argument, ArgumentType};
use crate::{Arch, Location, Operand};

/// A schema that does not agree with an operand. The note knows what the compiler did: its size and kind are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The argument's name.
    pub argument: String,
    /// What the schema says.
    pub claimed: ArgumentType,
    /// What the note says: bytes.
    pub bytes: u8,
    /// What the note says: whether it is a float.
    pub float: bool,
}

impl Conflict {
    /// How an argument's type and its operand do not agree, if so.
    ///
    /// A type of fewer bytes than the operand has is no conflict: compilers widen. Schemas are written with 64-bit
    /// programs in mind, so that 8 bytes which a 32-bit program has as 4 are none either; nor is a constant, which has the size
    /// of a plain `int`.
    #[must_use]
    pub fn find(argument: &Argument, operand: &Operand, arch: Arch) -> Option<Self> {
        let claimed = argument.kind.as_ref()?;
        operand.size?;
        if matches!(
            operand.location,
            Location::Constant(_) | Location::ConstantExpression(_)
        ) {
            return None;
        }
        let bytes = operand.bytes(arch);
        let kind = claimed.is_float() != operand.float;
        let word = arch.pointer_size() == 4 && bytes == 4 && claimed.bytes() == Some(8);
        let needed = match claimed {
            kind if kind.is_address() => arch.pointer_size(),
            kind => kind.bytes().unwrap_or(1),
        };
        (kind || needed > bytes && !word).then(|| Self {
            argument: argument.name.clone(),
            claimed: claimed.clone(),
            bytes,
            float: operand.float,
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.float { "a float" } else { "an integer" };
        write!(
            f,
            "{}: the schema says {}, the note {kind} of {}, which is taken",
            self.argument,
            self.claimed,
            super::counted(self.bytes.into(), "byte")
        )
    }
}
