//! DWARF expressions of unwind tables, evaluated within limits.

use gimli::{Encoding, EvaluationResult, Expression, Value};

use crate::entry_work::Budget;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, StackEnd};
use crate::table::Slice;

/// Operations that an evaluation may take. An expression can jump backwards, and so may never end. Those of gcc, clang and glibc take at most 15
/// (the procedure linkage table).
const MAX_OPERATIONS: u32 = 100;

/// What an expression may refer to.
pub(crate) struct Frame<'a> {
    pub(crate) registers: &'a Registers,
    pub(crate) stack: StackCopy<'a>,
    pub(crate) encoding: Encoding,
    pub(crate) budget: &'a Budget,
}

impl Frame<'_> {
    /// The value of an expression; `cfa` is what its stack begins with, the canonical frame address, unless it is to determine that.
    pub(crate) fn evaluate(
        &self,
        expression: Expression<Slice<'_>>,
        cfa: Option<u64>,
    ) -> Result<u64, StackEnd> {
        self.budget.expression()?;
        let unusable = |_| StackEnd::BadExpression;
        let mut evaluation = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().map_err(unusable)?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.get(register.0);
                    let value = value.ok_or(StackEnd::UnknownRegister(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory {
                    address,
                    size: 8,
                    space: None,
                    ..
                } => {
                    let word = self.stack.word(address)?;
                    evaluation.resume_with_memory(Value::Generic(word))
                }
                // What is left has no place in unwind tables (DWARF 5, 6.4.2).
                _ => return Err(StackEnd::BadExpression),
            }
            .map_err(unusable)?;
        }
        let value = evaluation.value_result().ok_or(StackEnd::BadExpression)?;
        value.to_u64(u64::MAX).map_err(unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{EndianSlice, Format, LittleEndian};

    fn evaluate(code: &[u8], cfa: Option<u64>) -> Result<u64, StackEnd> {
        let mut registers = Registers::default();
        registers.set(7, Some(0x1000));
        let bytes: Vec<u8> = (0..32).collect();
        let budget = Budget::new();
        let frame = Frame {
            budget: &budget,
            registers: &registers,
            stack: StackCopy {
                start: 0x1000,
                bytes: &bytes,
            },
            encoding: Encoding {
                address_size: 8,
                format: Format::Dwarf32,
                version: 1,
            },
        };
        frame.evaluate(Expression(EndianSlice::new(code, LittleEndian)), cfa)
    }

    #[test]
    fn registers_and_the_stack_are_read() {
        // DW_OP_breg7 +8
        assert_eq!(evaluate(&[0x77, 8], None), Ok(0x1008));
        // ... DW_OP_deref
        let word = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(evaluate(&[0x77, 8, 0x06], None), Ok(word));
        // DW_OP_plus_uconst 16
        assert_eq!(evaluate(&[0x23, 16], Some(0x2000)), Ok(0x2010));
        assert_eq!(
            evaluate(&[0x76, 0], None),
            Err(StackEnd::UnknownRegister(6))
        );
        assert_eq!(evaluate(&[0x77, 32, 0x06], None), Err(StackEnd::CopyEnds));
        assert_eq!(
            evaluate(&[0x77, 0x78, 0x06], None),
            Err(StackEnd::NotCopied(0xff8))
        );
    }

    #[test]
    fn an_expression_that_never_ends_is_refused() {
        for endless in [
            // DW_OP_skip -3
            &[0x2f, 0xfd, 0xff][..],
            // DW_OP_lit1; DW_OP_bra -4
            &[0x31, 0x28, 0xfc, 0xff],
            // DW_OP_dup; DW_OP_skip -4
            &[0x31, 0x12, 0x2f, 0xfc, 0xff],
            // DW_OP_breg7 0; DW_OP_drop; DW_OP_skip -6: each register is asked for
            &[0x77, 0, 0x13, 0x2f, 0xfa, 0xff],
        ] {
            let result = evaluate(endless, Some(1));
            assert_eq!(result, Err(StackEnd::BadExpression), "{endless:x?}");
        }
    }

    #[test]
    fn what_has_no_place_in_unwind_tables_is_refused() {
        // Nothing, an unknown operation, addr, call_frame_cfa, piece, entry_value, stack_value, a division by 0, a call, deref_size 16.
        for bad in [
            &[][..],
            &[0xff],
            &[0x03, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x9c],
            &[0x31, 0x93, 4],
            &[0xa3, 1, 0x30],
            &[0x31, 0x9f],
            &[0x31, 0x30, 0x1b],
            &[0x98, 0, 0],
            &[0x31, 0x94, 16],
        ] {
            assert_eq!(
                evaluate(bad, None),
                Err(StackEnd::BadExpression),
                "{bad:x?}"
            );
        }
    }
}
