//! What the callers of a hit depend on, so that the same stack is recognized when it comes again (`known_stacks.rs`).
//!
//! The stack pointer of each caller follows from the one before and the tables, unless a function keeps it in its frame pointer. So the words that
//! matter are the return addresses, and those saved frame pointers that are used. What else is saved on the stack differs from hit to hit, and
//! changes nothing.
//!
//! They are noted in the order in which they decide. So two stacks that begin with the same registers in the same code have the same places up to
//! the first one with another value, and that place is the same, too.

use gimli::{CfaRule, RegisterRule};

use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::{StackCopy, StackEnd};
use crate::table::ColumnRule;

/// What the callers of a hit depend on, besides the code of the process, the stack pointer, the program counter and the length of the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// In the order in which they were used.
    values: Vec<FollowedValue>,
    /// The frame pointer of the hit, if it is known.
    of_hit: Option<u64>,
    uses_that_of_hit: bool,
    /// Where the frame pointer is saved, if it was saved; it was not used yet.
    saved: Option<FollowedValue>,
    is_saved: bool,
    /// Whether something else was used.
    is_more: bool,
}

/// A value that was used, and where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FollowedValue {
    pub(crate) place: FollowedPlace,
    pub(crate) value: u64,
}

/// Where a value was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowedPlace {
    /// The frame pointer of the hit.
    FramePointer,
    /// The word of the stack at this address.
    Stack(u64),
}

impl FollowedPlace {
    /// What another hit has there.
    #[inline]
    pub(crate) fn read(
        self,
        machine: &Machine,
        hit: &Registers,
        stack: StackCopy<'_>,
    ) -> Option<u64> {
        match self {
            Self::FramePointer => hit.get(machine.fp),
            Self::Stack(address) => stack.word(address).ok(),
        }
    }
}

impl Followed {
    /// Begins with a hit.
    pub(crate) fn begin(&mut self, machine: &Machine, hit: &Registers) {
        self.of_hit = hit.get(machine.fp);
        self.values.clear();
        (self.uses_that_of_hit, self.is_saved) = (false, false);
        (self.saved, self.is_more) = (None, false);
    }

    /// What was used, in the order in which it was.
    pub(crate) fn values(&self) -> &[FollowedValue] {
        &self.values
    }

    /// Something was used that is not noted.
    pub(crate) const fn more(&mut self) {
        self.is_more = true;
    }

    /// The frame pointer was used: that of the hit, or the one that was saved last.
    fn uses_frame_pointer(&mut self) {
        if self.is_saved {
            self.values.extend(self.saved.take());
        } else if !self.uses_that_of_hit {
            self.uses_that_of_hit = true;
            self.is_more |= self.of_hit.is_none();
            self.values.extend(self.of_hit.map(|value| FollowedValue {
                place: FollowedPlace::FramePointer,
                value,
            }));
        }
    }

    /// The rule for the canonical frame address was followed.
    pub(crate) fn frame_address(&mut self, machine: &Machine, rule: &CfaRule<usize>) {
        match rule {
            CfaRule::RegisterAndOffset { register, .. } if register.0 == machine.sp => {}
            CfaRule::RegisterAndOffset { register, .. } if register.0 == machine.fp => {
                self.uses_frame_pointer();
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
            (RegisterRule::Offset(offset), Ok(Some(value))) => Some(FollowedValue {
                place: FollowedPlace::Stack(cfa.wrapping_add_signed(*offset)),
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
            self.values.extend(word);
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
        self.uses_frame_pointer();
        let word = |offset| {
            let address = frame.get(machine.fp)?.wrapping_add(offset);
            let value = stack.word(address).ok()?;
            let place = FollowedPlace::Stack(address);
            Some(FollowedValue { place, value })
        };
        self.values.extend(word(8));
        (self.saved, self.is_saved) = (word(0), true);
    }

    /// Whether that is all that the callers depend on.
    pub(crate) const fn is_all(&self) -> bool {
        !self.is_more
    }
}
