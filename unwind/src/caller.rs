//! The registers of a caller, by an entry of an unwind table, or by its frame pointer.
//!
//! Runtimes that make code push the return address and the frame pointer of the caller, and have the frame pointer lead there, so that their own
//! unwinders and garbage collectors find the callers.
//!
//! Code that was made at run time has no tables at all. Its frame pointer is followed if it is above the stack pointer
//! by at most 1 MiB, and leads to a return address in memory that is mapped executable. The same holds for functions
//! without an entry in processes that make code, for the built-in functions of V8. The registers that a caller found in
//! this way has are the frame pointer, the stack pointer and the address, so tables that need others end the stack.

use gimli::{CfaRule, RegisterRule};

use crate::entry_work::Budget;
use crate::expression::Frame;
use crate::followed::Followed;
use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, StackEnd};
use crate::table::{Row, Table};

/// The row for an address.
#[derive(Clone, Copy)]
pub(crate) struct TableRow<'a> {
    pub(crate) table: &'a Table,
    pub(crate) row: &'a Row,
    pub(crate) budget: &'a Budget,
}

/// The registers of a frame, and those of its caller, which take their place.
pub(crate) struct StepRegisters<'a> {
    pub(crate) frame: &'a mut Registers,
    pub(crate) caller: &'a mut Registers,
}

impl StepRegisters<'_> {
    /// The caller is the frame now.
    pub(crate) const fn pass(&mut self) {
        std::mem::swap(&mut self.frame, &mut self.caller);
    }
}

/// Fills the registers of the caller of a frame, by the rules for the frame's address. Whether it has a caller (DWARF 5, 6.4.4).
///
/// A register other than the return address whose rule cannot be followed is unknown; it ends the stack only where it is needed.
pub(crate) fn caller(
    machine: &Machine,
    TableRow { table, row, budget }: TableRow<'_>,
    registers: &mut StepRegisters<'_>,
    stack: StackCopy<'_>,
    followed: &mut Followed,
) -> Result<bool, StackEnd> {
    let (registers, next) = (&*registers.frame, &mut *registers.caller);
    let rules = Rules {
        table,
        frame: Frame {
            registers,
            stack,
            encoding: row.encoding,
            budget,
        },
    };
    let cfa = rules.cfa(&row.cfa)?;
    followed.frame_address(machine, &row.cfa);
    // Where the return address is in no register, it cannot be in the same place in the caller.
    let is_same = |rule: &RegisterRule<usize>| {
        row.return_column == machine.ip && *rule == RegisterRule::SameValue
    };
    next.keep_of(registers, machine.kept);
    next.set(machine.sp, Some(cfa));
    let mut address = None;
    for rule in &row.rules {
        let value = rules.value(rule.column, &rule.rule, cfa);
        let is_return = rule.column == row.return_column;
        followed.register(machine, rule, is_return, cfa, &value);
        if is_return {
            if is_same(&rule.rule) {
                return Err(StackEnd::BadEntry);
            }
            let Some(value) = value? else {
                return Ok(false);
            };
            address = Some(value);
            next.set(rule.column, address);
        } else {
            if value == Err(StackEnd::TooMuchWork) {
                return Err(StackEnd::TooMuchWork);
            }
            next.set(rule.column, value.ok().flatten());
        }
    }
    let address = match address {
        Some(address) => address,
        None if is_same(&RegisterRule::SameValue) => return Err(StackEnd::BadEntry),
        None => {
            followed.more();
            let register = registers.get(row.return_column);
            register.ok_or(StackEnd::UnknownRegister(row.return_column))?
        }
    };
    next.set(machine.ip, Some(machine.code_address(address)));
    Ok(true)
}

/// The registers that a signal interrupted, out of those of the code that its handler returns to.
pub(crate) fn interrupted(
    machine: &Machine,
    registers: &Registers,
    stack: StackCopy<'_>,
) -> Result<Registers, StackEnd> {
    let sp = registers.get(machine.sp);
    let sp = sp.ok_or(StackEnd::UnknownRegister(machine.sp))?;
    let mut saved = Registers::default();
    for register in machine.saved {
        let word = stack.word(sp.wrapping_add(register.offset.into()))?;
        saved.set(register.column, Some(word));
    }
    Ok(saved)
}

/// Whether a signal's handler has the stack of `sigaltstack(2)`, which what it interrupted does not have. The registers are those of the code
/// that the handler returns to, and those that the signal interrupted.
pub(crate) fn is_on_other_stack(
    machine: &Machine,
    [handler, interrupted]: [&Registers; 2],
    stack: StackCopy<'_>,
) -> bool {
    let Some(sp) = handler.get(machine.sp) else {
        return false;
    };
    let saved = sp.wrapping_add(machine.signal_stack.into());
    // `ss_sp`, `ss_flags`, `ss_size`
    let (Ok(begin), Ok(size)) = (stack.word(saved), stack.word(saved.wrapping_add(16))) else {
        return false;
    };
    // The stack pointer of an empty stack is its end.
    let is_there = |sp: u64| sp.wrapping_sub(begin).wrapping_sub(1) < size;
    is_there(sp) && !interrupted.get(machine.sp).is_some_and(is_there)
}

/// Follows the rules of a row.
struct Rules<'a> {
    table: &'a Table,
    frame: Frame<'a>,
}

impl Rules<'_> {
    /// The canonical frame address.
    fn cfa(&self, rule: &CfaRule<usize>) -> Result<u64, StackEnd> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Ok(self.register(register.0)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => {
                let expression = self.table.expression(*expression)?;
                self.frame.evaluate(expression, None)
            }
        }
    }

    /// The value of a register in the caller; `None` if it has none there.
    fn value(
        &self,
        column: u16,
        rule: &RegisterRule<usize>,
        cfa: u64,
    ) -> Result<Option<u64>, StackEnd> {
        let evaluate = |expression| {
            let expression = self.table.expression(expression)?;
            self.frame.evaluate(expression, Some(cfa))
        };
        let word = |address| self.frame.stack.word(address);
        match *rule {
            RegisterRule::Undefined => return Ok(None),
            RegisterRule::SameValue => self.register(column),
            RegisterRule::Offset(offset) => word(cfa.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => self.register(other.0),
            RegisterRule::Expression(expression) => word(evaluate(expression)?),
            RegisterRule::ValExpression(expression) => evaluate(expression),
            RegisterRule::Architectural | RegisterRule::Constant(_) => Err(StackEnd::BadEntry),
        }
        .map(Some)
    }

    fn register(&self, column: u16) -> Result<u64, StackEnd> {
        let value = self.frame.registers.get(column);
        value.ok_or(StackEnd::UnknownRegister(column))
    }
}

/// Maximum size of a frame, bytes. What is farther away is no frame pointer.
const MAX_FRAME: u64 = 1 << 20;
/// Size of what a function pushes, bytes.
const PUSHED: u64 = 16;

/// The registers of the caller of a function that has no entry in an unwind table, by its frame pointer. All others may have been changed without being
/// saved where a table would say.
///
/// # Errors
/// [`StackEnd::NoFrame`] if the frame pointer leads to no frame of this stack.
pub(crate) fn caller_by_frame_pointer(
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
