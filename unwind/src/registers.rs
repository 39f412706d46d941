//! The registers of a frame.

use crate::machine::COLUMNS;

/// The registers of a frame, as far as they are known, by their columns in unwind tables ([`column`](crate::column)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    words: [u64; COLUMNS],
    /// A bit for each column.
    known: u64,
}

impl Default for Registers {
    /// No register is known.
    fn default() -> Self {
        Self {
            words: [0; COLUMNS],
            known: 0,
        }
    }
}

impl Registers {
    /// The register of a column; `None` if it is not known.
    #[must_use]
    pub fn get(&self, column: u16) -> Option<u64> {
        let word = self.words.get(usize::from(column))?;
        (self.known >> column & 1 != 0).then_some(*word)
    }

    /// Sets the register of a column; `None` makes it unknown. A column that unwinding does not need is ignored.
    pub fn set(&mut self, column: u16, value: Option<u64>) {
        if let Some(word) = self.words.get_mut(usize::from(column)) {
            *word = value.unwrap_or(0);
            self.known = self.known & !(1 << column) | u64::from(value.is_some()) << column;
        }
    }

    /// Becomes `other`, of which only the registers are known whose columns have a bit in `kept`.
    pub(crate) const fn keep_of(&mut self, other: &Self, kept: u64) {
        self.words = other.words;
        self.known = other.known & kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_registers_have_no_value() {
        let mut registers = Registers::default();
        for column in [0, 7, 32, 33, 64, u16::MAX] {
            assert_eq!(registers.get(column), None);
            registers.set(column, Some(column.into()));
        }
        assert_eq!(registers.get(7), Some(7));
        assert_eq!(registers.get(32), Some(32));
        assert_eq!(registers.get(33), None);
        assert_eq!(registers.get(64), None);
        let mut kept = Registers::default();
        kept.set(2, Some(2));
        kept.keep_of(&registers, 1 << 32);
        assert_eq!(kept.get(2), None);
        assert_eq!(kept.get(7), None);
        assert_eq!(kept.get(32), Some(32));
        kept.set(32, None);
        assert_eq!(kept.get(32), None);
    }
}
