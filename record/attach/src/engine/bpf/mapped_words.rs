//! The words of an array of the kernel, mapped into memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// Words that programs and the recorder change atomically.
///
/// Invariant: `map` is `words` aligned u64 long, and stays mapped as long as `self`.
#[derive(Debug)]
pub(super) struct MappedWords {
    map: MmapRaw,
    words: usize,
}

impl MappedWords {
    /// The first `words` words of an array that can be mapped.
    ///
    /// # Errors
    /// The error of `mmap(2)`.
    pub(super) fn new(array: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let map = MmapOptions::new()
            .len(words * 8)
            .map_raw(array.as_raw_fd())?;
        Ok(Self { map, words })
    }

    /// A word; `None` beyond the last.
    pub(super) fn get(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.words {
            return None;
        }
        let words = self.map.as_mut_ptr().cast::<AtomicU64>();
        let at = words.wrapping_add(index);
        // SAFETY: by the invariant this is an aligned u64, which others change only atomically.
        Some(unsafe { &*at })
    }
}
