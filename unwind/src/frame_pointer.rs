//! The caller of a function that has no entry in an unwind table, by its frame pointer.
//!
//! Runtimes that make code push the return address and the frame pointer of the caller, and have the frame pointer lead there, so that their own
//! unwinders and garbage collectors find the callers.
//!
//! Code that was made at run time has no tables at all. Its frame pointer is followed if it is above the stack pointer
//! by at most 1 MiB, and leads to a return address in memory that is mapped executable. The same holds for functions
//! without an entry in processes that make code, for the built-in functions of V8. The registers that a caller found in
//! this way has are the frame pointer, the stack pointer and the address, so tables that need others end the stack.

use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::StackCopy;
use crate::stack_end::StackEnd;

/// Maximum size of a frame, bytes. What is farther away is no frame pointer.
const MAX_FRAME: u64 = 1 << 20;
/// Size of what a function pushes, bytes.
const PUSHED: u64 = 16;

/// The registers of the caller. All others may have been changed without being saved where a table would say.
///
/// # Errors
/// [`StackEnd::NoFrame`] if the frame pointer leads to no frame of this stack.
pub(crate) fn caller(
    machine: &Machine,
    registers: &Registers,
    stack: StackCopy<'_>,
) -> Result<Registers, StackEnd> {
    let known = |column| {
        let register = registers.get(column);
        register.ok_or(StackEnd::UnknownRegister(column))
    };
    let (sp, fp) = (known(machine.sp)?, known(machine.fp)?);
    let size = fp.checked_sub(sp).ok_or(StackEnd::NoFrame)?;
    if size > MAX_FRAME || !fp.is_multiple_of(8) {
        return Err(StackEnd::NoFrame);
    }
    let saved = stack.word(fp)?;
    let address = stack.word(fp.wrapping_add(8))?;
    let mut caller = Registers::default();
    caller.set(machine.fp, Some(saved));
    caller.set(machine.sp, Some(fp.wrapping_add(PUSHED)));
    caller.set(machine.ip, Some(machine.code_address(address)));
    Ok(caller)
}
