//! How much work the instructions of an entry are.

use gimli::{CallFrameInstruction, CallFrameInstructionIter, Reader};

use crate::stack_end::StackEnd;

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
