//! From a hit to its callers.
//!
//! Unwind tables come from the file system and may be made to do harm, so nothing in them is believed. Each caller's
//! frame must be above its callee's, except after a signal. There are at most 127 frames, or as many as `--max-stack`
//! says. What all frames of a stack take together is counted in instructions and expressions of tables, not in time, so
//! the same stack always ends at the same frame (`budget.rs`, `work.rs`). Failures are remembered as rows are.
//!
//! Where a file has no unwind information, the stack ends: a frame pointer would be a guess, by which perf shows
//! addresses that are no callers. A stack that does not end with the outermost frame has the reason as its last line.

use foldhash::HashMap;
use gimli::UnwindContext;
use usdtrec_format::Arch;

use crate::caller::{
    StepRegisters, TableRow, caller, caller_by_frame_pointer, interrupted, is_on_other_stack,
};
use crate::code::{Code, MappedCode, ProcessCode};
use crate::entry_work::Budget;
use crate::followed::Followed;
use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, StackEnd};
use crate::table::Row;

/// Rows that are remembered; then all are looked up anew.
const ROWS: usize = 1 << 14;

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Where it continues: the address of the hit, of what a signal interrupted, or a return address.
    pub address: u64,
    /// Whether that is a return address, so that the instruction before it is the frame's call.
    pub is_return: bool,
}

impl StackFrame {
    /// An address in the instruction that the frame executes, for names and lines: of a call, the address of its last byte, as in perf.
    #[must_use]
    pub const fn code(self) -> u64 {
        self.address.wrapping_sub(self.is_return as u64)
    }
}

/// Finds callers. One a thread.
pub struct Unwinder {
    machine: &'static Machine,
    context: UnwindContext<usize>,
    /// Rows by the number of their tables and the address that they are for: many stacks have the same callers.
    rows: HashMap<(u64, u64), KnownRow>,
    budget: Budget,
    /// The stack pointer after the last step.
    outermost: Option<u64>,
    /// Whether a signal's handler, which has a stack of its own, was passed.
    is_on_other_stack: bool,
    followed: Followed,
}

/// A row that is remembered.
struct KnownRow {
    /// The number of its table among them.
    table: usize,
    /// The row, or why there is none.
    row: Result<Row, StackEnd>,
}

/// What a frame leads to.
#[derive(PartialEq, Eq)]
enum Step {
    /// The frame has no caller.
    Outermost,
    /// The caller, or what a signal interrupted.
    Frame(StackFrame),
}

impl std::fmt::Debug for Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder").finish_non_exhaustive()
    }
}

impl Unwinder {
    /// `None` if stacks of the architecture are not unwound.
    #[must_use]
    pub fn new(arch: Arch) -> Option<Self> {
        Some(Self {
            machine: Machine::for_arch(arch)?,
            context: UnwindContext::new(),
            rows: HashMap::default(),
            budget: Budget::new(),
            outermost: None,
            is_on_other_stack: false,
            followed: Followed::default(),
        })
    }

    /// Appends the frames of a hit, the innermost first, at most `limit`.
    ///
    /// The caller of code that was made at run time is found by the frame pointer, and must be in code.
    /// A handler of a signal returns to the code that the signal interrupted, with the registers that the kernel saved on the stack.
    ///
    /// A frame takes bounded time, whatever tables and stack contain: an entry of a table has at most 8 KiB, an expression takes
    /// at most 100 operations. What all frames of a stack take together is limited, too.
    pub fn unwind<'t>(
        &mut self,
        hit: &Registers,
        stack: StackCopy<'_>,
        code: impl ProcessCode<'t>,
        limit: usize,
        frames: &mut Vec<StackFrame>,
    ) -> StackEnd {
        let mut followed = std::mem::take(&mut self.followed);
        followed.begin(self.machine, hit);
        let end = self.walk(hit, stack, code, limit, frames, &mut followed);
        self.followed = followed;
        end
    }

    fn walk<'t>(
        &mut self,
        hit: &Registers,
        stack: StackCopy<'_>,
        mut code: impl ProcessCode<'t>,
        limit: usize,
        frames: &mut Vec<StackFrame>,
        followed: &mut Followed,
    ) -> StackEnd {
        self.budget.renew();
        let mut registers = StepRegisters {
            frame: &mut hit.clone(),
            caller: &mut Registers::default(),
        };
        let most = frames.len().saturating_add(limit);
        let Some(address) = registers.frame.get(self.machine.ip) else {
            return StackEnd::UnknownRegister(self.machine.ip);
        };
        let mut frame = StackFrame {
            address,
            is_return: false,
        };
        self.outermost = None;
        self.is_on_other_stack = false;
        while frames.len() < most {
            frames.push(frame);
            self.outermost = registers.frame.get(self.machine.sp);
            let step = match code.at(frame.code()) {
                None | Some(MappedCode::Unknown) => return StackEnd::NoCode,
                Some(MappedCode::Made) => {
                    followed.frame_pointer(self.machine, registers.frame, stack);
                    self.step_by_pointer(&mut registers, stack, &mut code)
                }
                Some(MappedCode::File(found)) => {
                    match self.step(found, frame, &mut registers, stack, followed) {
                        Err(StackEnd::NoEntry) if code.is_maker() => {
                            followed.frame_pointer(self.machine, registers.frame, stack);
                            let step = self.step_by_pointer(&mut registers, stack, &mut code);
                            let is_none = step == Err(StackEnd::NoFrame);
                            if is_none {
                                Err(StackEnd::NoEntry)
                            } else {
                                step
                            }
                        }
                        step => step,
                    }
                }
            };
            frame = match step {
                Ok(Step::Frame(caller)) => caller,
                Ok(Step::Outermost) => {
                    self.outermost = registers.frame.get(self.machine.sp);
                    return StackEnd::Outermost;
                }
                Err(StackEnd::CopyEnds | StackEnd::NotCopied(_)) if self.is_on_other_stack => {
                    return StackEnd::OtherStack;
                }
                Err(end) => return end,
            };
        }
        StackEnd::Limit
    }

    /// The stack pointer after the last frame that [`unwind`](Self::unwind) found: what was read of the stack is below it, unless a signal
    /// was handled on another stack. `None` if it is unknown.
    #[must_use]
    pub const fn outermost(&self) -> Option<u64> {
        self.outermost
    }

    /// What the callers that [`unwind`](Self::unwind) found, and why there are no more, depend on, for
    /// [`KnownStacks::put`](crate::KnownStacks::put); `None` if it is more than can be noted.
    #[must_use]
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.is_all().then_some(&self.followed)
    }

    /// The caller of a frame; the registers become its.
    fn step(
        &mut self,
        code: Code<'_>,
        frame: StackFrame,
        registers: &mut StepRegisters<'_>,
        stack: StackCopy<'_>,
        followed: &mut Followed,
    ) -> Result<Step, StackEnd> {
        let machine = self.machine;
        if !std::ptr::eq(code.tables.machine(), machine) {
            return Err(StackEnd::NoEntry);
        }
        let in_file = code.address.wrapping_add(u64::from(frame.is_return));
        let is_return = match self.row(code) {
            Ok(found) => {
                if !caller(machine, found, registers, stack, followed)? {
                    return Ok(Step::Outermost);
                }
                // What a signal interrupted may be on another stack. The innermost function of some machines has no frame of its own.
                let sp = |registers: &Registers| {
                    let sp = registers.get(machine.sp);
                    sp.ok_or(StackEnd::UnknownRegister(machine.sp))
                };
                let least = sp(registers.frame)?.saturating_add(u64::from(frame.is_return));
                if !found.row.is_signal && sp(registers.caller)? < least {
                    return Err(StackEnd::NotAbove);
                }
                !found.row.is_signal
            }
            Err(StackEnd::NoEntry) if code.tables.is_signal_return(in_file) => {
                *registers.caller = interrupted(machine, registers.frame, stack)?;
                false
            }
            Err(end) => return Err(end),
        };
        if !is_return {
            followed.more();
            self.is_on_other_stack |=
                is_on_other_stack(machine, [registers.frame, registers.caller], stack);
        }
        registers.pass();
        Ok(match registers.frame.get(machine.ip) {
            None => Step::Outermost,
            // A signal may have interrupted a call of address 0, which has a caller.
            Some(0) if is_return => Step::Outermost,
            Some(address) => Step::Frame(StackFrame { address, is_return }),
        })
    }

    /// The caller of a frame that has no table, by its frame pointer; the registers become its.
    fn step_by_pointer<'t>(
        &self,
        registers: &mut StepRegisters<'_>,
        stack: StackCopy<'_>,
        code: &mut impl ProcessCode<'t>,
    ) -> Result<Step, StackEnd> {
        let machine = self.machine;
        *registers.caller = caller_by_frame_pointer(machine, registers.frame, stack)?;
        let address = registers.caller.get(machine.ip).unwrap_or(0);
        let caller = StackFrame {
            address,
            is_return: true,
        };
        if address != 0 && code.at(caller.code()).is_none() {
            return Err(StackEnd::NoFrame);
        }
        registers.pass();
        Ok(if address == 0 {
            Step::Outermost
        } else {
            Step::Frame(caller)
        })
    }

    /// The row for an address, and its table.
    fn row<'u>(&'u mut self, code: Code<'u>) -> Result<TableRow<'u>, StackEnd> {
        let Code { tables, address } = code;
        let number = tables.number();
        if self.rows.len() >= ROWS {
            self.rows.clear();
        }
        let known = self.rows.entry((number, address));
        let context = &mut self.context;
        let known = known.or_insert_with(|| {
            let found = tables.row(address, context);
            KnownRow {
                table: found.as_ref().map_or(0, |found| found.at),
                row: found.map(|found| found.row),
            }
        });
        let row = known.row.as_ref().map_err(|end| *end)?;
        let table = tables.table(known.table).ok_or(StackEnd::NoEntry)?;
        self.budget.row(number, address, row.work)?;
        Ok(TableRow {
            table,
            row,
            budget: &self.budget,
        })
    }
}
