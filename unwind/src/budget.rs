//! The work that a stack may cause.
//!
//! What is in a table decides how much work a frame is, so the sums of a stack are limited, too. The sums do not depend on what was unwound
//! before: rows that are remembered count as well.

use std::cell::Cell;

use crate::stack_end::StackEnd;

/// Work of an entry that is not counted: that of all entries of usual programs but the largest.
const FREE: u32 = 512;
/// Work of all larger entries of a stack. An instruction is 1, so that the largest entry of PostgreSQL (2,400 bytes) is about 2,000.
const MAX_WORK: u32 = 32 << 10;
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
            work: MAX_WORK,
            counted: Vec::new(),
            expressions: Cell::new(MAX_EXPRESSIONS),
        }
    }

    /// Begins another stack.
    pub(crate) fn renew(&mut self) {
        self.work = MAX_WORK;
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
