//! The work that unwinding may cause: that of the instructions of an entry, and of all entries of a stack.
//!
//! What is in a table decides how much work a frame is, so the sums of a stack are limited, too. The sums do not depend on what was unwound
//! before: rows that are remembered count as well.

use std::cell::Cell;

use gimli::{CallFrameInstruction, CallFrameInstructionIter, Reader};

use crate::stack_copy::StackEnd;

/// The most work of an entry. `gimli` copies all rules to remember them: the instructions of 8 KiB can copy a megabyte in that way.
const MAX_WORK: u32 = 16 << 10;

/// The work of an entry: 1 for an instruction, and as much as there are rules for those that copy the rules.
#[derive(Debug, Default)]
pub(crate) struct Work {
    work: u32,
    /// A bit for each register below 256 that has a rule.
    registers: [u64; 4],
    rules: u32,
}

impl Work {
    /// Adds instructions, up to the first one that cannot be parsed.
    pub(crate) fn add<R: Reader<Offset = usize>>(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, R>,
    ) -> Result<(), StackEnd> {
        while let Ok(Some(instruction)) = instructions.next() {
            self.work += self.count(&instruction);
            if self.work > MAX_WORK {
                return Err(StackEnd::LongEntry);
            }
        }
        Ok(())
    }

    pub(crate) const fn get(&self) -> u32 {
        self.work
    }

    /// The work of an instruction. Notes the register for which it makes a rule.
    fn count(&mut self, instruction: &CallFrameInstruction<usize>) -> u32 {
        use CallFrameInstruction as I;
        let register = match instruction {
            I::RememberState | I::RestoreState => return 1 + self.rules,
            I::Undefined { register }
            | I::SameValue { register }
            | I::Offset { register, .. }
            | I::OffsetExtendedSf { register, .. }
            | I::ValOffset { register, .. }
            | I::ValOffsetSf { register, .. }
            | I::Expression { register, .. }
            | I::ValExpression { register, .. }
            | I::Restore { register } => register,
            I::Register { dest_register, .. } => dest_register,
            _ => return 1,
        };
        let word = self.registers.get_mut(usize::from(register.0) / 64);
        let bit = 1 << (register.0 % 64);
        match word {
            Some(word) if *word & bit != 0 => {}
            Some(word) => {
                *word |= bit;
                self.rules += 1;
            }
            None => self.rules += 1,
        }
        // The rule is searched for.
        1 + self.rules / 8
    }
}

/// Work of an entry that is not counted: that of all entries of usual programs but the largest.
const FREE: u32 = 512;
/// Work of all larger entries of a stack. An instruction is 1, so that the largest entry of PostgreSQL (2,400 bytes) is about 2,000.
const MAX_STACK_WORK: u32 = 32 << 10;
/// Expressions that a stack may evaluate. A signal frame of glibc has 18, a frame in the procedure linkage table has 1.
const MAX_EXPRESSIONS: u32 = 1 << 8;

/// What is left of the work that a stack may cause.
#[derive(Debug)]
pub(crate) struct Budget {
    work: u32,
    /// The rows that were counted, by the number of their tables and the address. A recursion has the same one many times.
    counted: Vec<(u64, u64)>,
    expressions: Cell<u32>,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self {
            work: MAX_STACK_WORK,
            counted: Vec::new(),
            expressions: Cell::new(MAX_EXPRESSIONS),
        }
    }

    /// Begins another stack.
    pub(crate) fn renew(&mut self) {
        self.work = MAX_STACK_WORK;
        self.counted.clear();
        self.expressions.set(MAX_EXPRESSIONS);
    }

    /// Counts the work of a row, once a stack.
    pub(crate) fn row(&mut self, tables: u64, address: u64, work: u32) -> Result<(), StackEnd> {
        if work <= FREE || self.counted.contains(&(tables, address)) {
            return Ok(());
        }
        self.counted.push((tables, address));
        self.work = self.work.checked_sub(work).ok_or(StackEnd::TooMuchWork)?;
        Ok(())
    }

    /// Counts an expression.
    pub(crate) fn expression(&self) -> Result<(), StackEnd> {
        let left = self.expressions.get().checked_sub(1);
        self.expressions.set(left.ok_or(StackEnd::TooMuchWork)?);
        Ok(())
    }
}
