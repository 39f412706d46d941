//! Conflicts between a schema and a note.
//!
//! The note has the compiler's size and type: if a schema claims more bytes or another type, that is reported and the
//! note is used. The schema determines signs, narrows widened integers, and declares strings; with a schema nothing else
//! is read as a string. It can also define an expression that is captured instead of an argument (`str(*(type+8))`): the
//! programs then have an argument list. A string whose length is another argument has exactly that many bytes, which the
//! program reads when all lengths are known.

use std::fmt;

use crate::arch::Arch;
use crate::operand::{Location, Operand};
use crate::schema::{Argument, ArgumentType};

/// A conflict between the type in a schema and an operand. The operand's size and type are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Name of the argument.
    pub argument: String,
    /// Type in the schema.
    pub claimed: ArgumentType,
    /// Size in the note, bytes.
    pub bytes: u8,
    /// Whether the note has a float.
    pub float: bool,
}

impl Conflict {
    /// Compares an argument's type with its operand; `None` if they agree.
    ///
    /// A type that is narrower than the operand is no conflict, because compilers widen. Schemas are written for 64-bit
    /// programs, so an 8-byte type with a 4-byte operand of a 32-bit program is no conflict, either; nor is a constant, which has the size
    /// of `int`.
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
            crate::counted(self.bytes, "byte")
        )
    }
}
