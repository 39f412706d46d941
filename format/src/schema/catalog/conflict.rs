//! Conflicts between a schema and a note.
//!
//! The note has the compiler's size and type: if a schema claims more bytes or another type, that is reported and the
//! note is used. The schema determines signs, narrows widened integers, and declares strings; with a schema nothing else
//! is read as a string. It can also define an expression that is captured instead of an argument (`str(*(type+8))`): the
//! programs then have an argument list. A string whose length is another argument has exactly that many bytes, which the
//! program reads when all lengths are known.

use crate::arch::Arch;
use crate::operand::{Location, Operand};
use crate::schema::Argument;

/// The conflict between an argument's type and its operand, whose size and type are used; `None` if they agree.
///
/// A type that is narrower than the operand is no conflict, because compilers widen. Schemas are written for 64-bit
/// programs, so an 8-byte type with a 4-byte operand of a 32-bit program is no conflict, either; nor is a constant, which has the size
/// of `int`.
#[must_use]
pub fn conflict(argument: &Argument, operand: &Operand, arch: Arch) -> Option<String> {
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
    (kind || needed > bytes && !word).then(|| {
        let (name, bytes) = (&argument.name, crate::counted(bytes, "byte"));
        let kind = if operand.float {
            "a float"
        } else {
            "an integer"
        };
        format!("{name}: the schema says {claimed}, the note {kind} of {bytes}, which is taken")
    })
}
