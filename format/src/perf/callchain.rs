//! Call chains of samples (`PERF_SAMPLE_CALLCHAIN`): a count, then addresses and markers of 8 bytes each, the innermost address first.
//!
//! A marker ([`CONTEXT_USER`]) is the context of the addresses after it. A chain that the recorder of usdtrec cut ends with markers that no
//! address follows: their number is the reason ([`ChainCut`]). perf shows no frame for them.

/// `PERF_CONTEXT_USER`: the addresses after it are of user space.
pub const CONTEXT_USER: u64 = -512_i64 as u64;
/// `PERF_CONTEXT_USER_DEFERRED`: the last word is a cookie, and the addresses of user space are in a later [`DeferredChain`] with it.
pub(crate) const CONTEXT_USER_DEFERRED: u64 = -640_i64 as u64;
/// `PERF_CONTEXT_MAX`: words from here on are markers.
pub(crate) const CONTEXT_MAX: u64 = -4095_i64 as u64;

crate::listed! {
    /// Why a call chain that the recorder wrote is cut: the reasons by their numbers of markers, from 1 on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ChainCut {
        /// There are more frames than were requested.
        Limit,
        /// The next frame is above the copy of the stack.
        CopyEnds,
        /// The frame pointer is not above the last frame, so it is no frame pointer.
        NoFrame,
        /// The memory at the frame pointer cannot be read.
        Unreadable,
        /// No file is known to be mapped at the last frame's address.
        NoFile,
        /// The last frame's file cannot be read, or is not the one that was mapped.
        FileNotRead,
        /// It has no unwind table.
        NoTable,
        /// Its table has no entry for the address.
        NoEntry,
        /// The entry is longer than is evaluated.
        LongEntry,
        /// The entry is not valid.
        BadEntry,
        /// A register is needed that is not known in the last frame.
        UnknownRegister,
        /// Memory is needed that is not in the copy of the stack.
        NotCopied,
        /// The caller's frame would not be above its callee's.
        NotAbove,
        /// The process is a 32-bit program.
        Program32,
        /// Finding the callers would take more work than a stack may cause.
        TooMuchWork,
        /// There are more frames than the record had room for. The recorder makes the room of the next stacks of the site larger.
        NoRoom,
        /// No callers were looked for, because more stacks were asked for than are taken in a second.
        Rate,
        /// The last frame is on the stack from which a signal's handler switched to another one, and only that one was copied.
        OtherStack,
        /// A reason that this version does not know.
        Other,
    }
}

impl ChainCut {
    /// The reason for which a chain is cut; `None` if it does not end with a marker.
    pub(crate) fn from_chain(chain: &[u8]) -> Option<Self> {
        let (words, _) = chain.as_chunks::<8>();
        let words = words.iter().rev().map(|word| u64::from_le_bytes(*word));
        let marks = words.take_while(|word| *word == CONTEXT_USER);
        Self::of_marks(marks.count() as u64)
    }

    /// The number of markers at the end of a chain that is cut for this reason.
    #[must_use]
    pub fn marks(self) -> usize {
        self as usize + 1
    }

    /// The reason with this number of markers; `None` for 0.
    #[must_use]
    pub fn of_marks(marks: u64) -> Option<Self> {
        let number = usize::try_from(marks.checked_sub(1)?).ok();
        let cut = number.and_then(|number| Self::ALL.get(number));
        Some(cut.copied().unwrap_or(Self::Other))
    }
}

/// Appends a chain of addresses of user space, with its count, and the markers for why it is cut.
pub fn put_callchain(addresses: &[u64], cut: Option<ChainCut>, out: &mut Vec<u8>) {
    let marks = cut.map_or(0, ChainCut::marks);
    let count = 1 + addresses.len() + marks;
    out.extend((count as u64).to_le_bytes());
    out.extend(CONTEXT_USER.to_le_bytes());
    out.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    out.extend(std::iter::repeat_n(CONTEXT_USER.to_le_bytes(), marks).flatten());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_cut_is_in_the_chain() {
        let reasons = ChainCut::ALL.map(Some);
        for cut in reasons.into_iter().chain([None]) {
            let mut out = Vec::new();
            put_callchain(&[0x1000, 0x2000], cut, &mut out);
            let (count, chain) = out.split_at(8);
            assert_eq!(count, (chain.len() as u64 / 8).to_le_bytes());
            assert_eq!(ChainCut::from_chain(chain), cut);
            assert_eq!(
                ChainCut::of_marks(cut.map_or(0, |cut| cut.marks() as u64)),
                cut
            );
        }
        assert_eq!(ChainCut::from_chain(&[]), None);
    }
}
