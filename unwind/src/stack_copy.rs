//! The copy of a stack.

use crate::stack_end::StackEnd;

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
