//! The copy of a stack, and why its frames end.
//!
//! The kernel saves on the stack of a signal's handler whether that is another one (`uc_stack`). So a cut there has a
//! reason of its own: the stack that was interrupted was not copied, and no larger copy would have it.

/// The bytes of a thread's stack from the stack pointer upwards, as they were at a hit.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// The stack pointer: the address of the first byte.
    pub start: u64,
    /// The bytes that were copied.
    pub bytes: &'a [u8],
}

impl StackCopy<'_> {
    /// The little-endian word at an address.
    ///
    /// # Errors
    /// [`StackEnd::CopyEnds`] if it is above the copy or partly so, [`StackEnd::NotCopied`] if it is below.
    pub fn word(&self, address: u64) -> Result<u64, StackEnd> {
        let offset = address.checked_sub(self.start);
        let offset = offset.ok_or(StackEnd::NotCopied(address))?;
        let offset = usize::try_from(offset).ok();
        let word = offset.and_then(|offset| self.bytes.get(offset..)?.first_chunk::<8>());
        word.map(|word| u64::from_le_bytes(*word))
            .ok_or(StackEnd::CopyEnds)
    }
}

/// Why unwinding ended. All but [`Outermost`](Self::Outermost) cut the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// With the outermost frame: its table says that it has no caller, or its return address is 0.
    Outermost,
    /// There are more frames than requested.
    Limit,
    /// The next frame is above the end of the copy of the stack.
    CopyEnds,
    /// The memory at this address is needed, which is not in the copy of the stack.
    NotCopied(u64),
    /// The last frame is on the stack from which a signal's handler switched to another one, and only that one was copied.
    OtherStack,
    /// Nothing is known of the code at the last frame.
    NoCode,
    /// The last frame has no unwind tables, and its frame pointer leads to no frame above it, or to no code.
    NoFrame,
    /// The unwind tables of the last frame's file have no entry for its address.
    NoEntry,
    /// The entry for the last frame's address, or its common part, is longer than is evaluated.
    LongEntry,
    /// The entry for the last frame's address cannot be parsed.
    BadEntry,
    /// An expression in the entry for the last frame's address cannot be evaluated, or takes too many operations.
    BadExpression,
    /// The register of this column is needed, which is not known.
    UnknownRegister(u16),
    /// The entries and expressions of the stack's frames are more work than a stack may cause.
    TooMuchWork,
    /// The caller's frame would be below its callee's, or the same.
    NotAbove,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_inside_of_the_copy() {
        let bytes: Vec<u8> = (0..24).collect();
        let stack = StackCopy {
            start: 0x1000,
            bytes: &bytes,
        };
        assert_eq!(stack.word(0x1001), Ok(0x0807_0605_0403_0201));
        assert_eq!(stack.word(0x1010), Ok(0x1716_1514_1312_1110));
        for address in [0x1011, 0x1018, u64::MAX] {
            assert_eq!(stack.word(address), Err(StackEnd::CopyEnds), "{address:#x}");
        }
        for address in [0, 0xfff] {
            let below = Err(StackEnd::NotCopied(address));
            assert_eq!(stack.word(address), below, "{address:#x}");
        }
    }
}
