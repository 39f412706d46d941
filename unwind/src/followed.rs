//! What the callers of a hit depend on, so that the same stack is recognized when it comes again.
//!
//! The stack pointer of each caller follows from the one before and the tables, unless a function keeps it in its frame pointer. So the words that
//! matter are the return addresses, and those saved frame pointers that are used. What else is saved on the stack differs from hit to hit, and
//! changes nothing.
//!
//! Most hits of a busy site have the callers of one of the last. The words are compared before another stack is
//! unwound, also where the stack is cut or goes through code that was made at run time.

use gimli::{CfaRule, RegisterRule};

use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::StackCopy;
use crate::stack_end::StackEnd;
use crate::table::ColumnRule;

/// What the callers of a hit depend on, besides the code of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// The stack pointer, the program counter, and the frame pointer if it was used.
    hit: [Option<u64>; 3],
    uses_frame_pointer: bool,
    /// Words of the stack.
    words: Vec<Word>,
    /// Where the frame pointer is saved, if it was saved; it was not used yet.
    saved: Option<Word>,
    is_saved: bool,
    /// Whether something else was used.
    is_more: bool,
}

/// A word of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    address: u64,
    value: u64,
}

impl Followed {
    /// Begins with a hit.
    pub(crate) fn begin(&mut self, machine: &Machine, hit: &Registers) {
        self.hit = of_hit(machine, hit);
        self.words.clear();
        (self.uses_frame_pointer, self.is_saved) = (false, false);
        (self.saved, self.is_more) = (None, false);
    }

    /// Something was used that is not noted.
    pub(crate) const fn more(&mut self) {
        self.is_more = true;
    }

    /// The rule for the canonical frame address was followed.
    pub(crate) fn frame_address(&mut self, machine: &Machine, rule: &CfaRule<usize>) {
        match rule {
            CfaRule::RegisterAndOffset { register, .. } if register.0 == machine.sp => {}
            CfaRule::RegisterAndOffset { register, .. } if register.0 == machine.fp => {
                self.uses_frame_pointer |= !self.is_saved;
                self.words.extend(self.saved.take());
            }
            _ => self.is_more = true,
        }
    }

    /// A rule for a register was followed from this frame address, with this result.
    pub(crate) fn register(
        &mut self,
        machine: &Machine,
        rule: &ColumnRule,
        is_return: bool,
        cfa: u64,
        value: &Result<Option<u64>, StackEnd>,
    ) {
        if !is_return && rule.column != machine.fp {
            return;
        }
        let word = match (&rule.rule, value) {
            (RegisterRule::Offset(offset), Ok(Some(value))) => Some(Word {
                address: cfa.wrapping_add_signed(*offset),
                value: *value,
            }),
            // What is above a copy is so again in a copy of this length.
            (RegisterRule::Undefined, _) | (RegisterRule::Offset(_), Err(StackEnd::CopyEnds)) => {
                None
            }
            (RegisterRule::SameValue, _) if !is_return => return,
            _ => return self.more(),
        };
        if is_return {
            self.words.extend(word);
        } else {
            (self.saved, self.is_saved) = (word, true);
        }
    }

    /// The frame pointer was followed: it leads to the caller's, and after that is the return address.
    pub(crate) fn frame_pointer(
        &mut self,
        machine: &Machine,
        frame: &Registers,
        stack: StackCopy<'_>,
    ) {
        self.uses_frame_pointer |= !self.is_saved;
        self.words.extend(self.saved.take());
        let word = |offset| {
            let address = frame.get(machine.fp)?.wrapping_add(offset);
            let value = stack.word(address).ok()?;
            Some(Word { address, value })
        };
        self.words.extend(word(8));
        (self.saved, self.is_saved) = (word(0), true);
    }

    /// Whether that is all that the callers depend on.
    pub(crate) const fn is_all(&self) -> bool {
        !self.is_more
    }

    /// Whether another hit at code of the same process has the same callers. It does if the stack pointer, the program counter, the length of
    /// the copy and the words that were followed are the same.
    pub(crate) fn is_same(&self, machine: &Machine, hit: &Registers, stack: StackCopy<'_>) -> bool {
        let [sp, ip, fp] = of_hit(machine, hit);
        let is_word = |word: &Word| stack.word(word.address) == Ok(word.value);
        self.hit[..2] == [sp, ip]
            && (!self.uses_frame_pointer || self.hit[2] == fp)
            && self.words.iter().all(is_word)
    }
}

fn of_hit(machine: &Machine, hit: &Registers) -> [Option<u64>; 3] {
    [machine.sp, machine.ip, machine.fp].map(|column| hit.get(column))
}
