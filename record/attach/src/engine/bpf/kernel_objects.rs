//! Objects of the kernel that several parts have: a program on a tracepoint, the words of an array that is mapped.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};
use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::sys::{self, ProgramKind};
use usdtrec_kernel::{KernelError, KernelOperation};

use crate::error::RecordError;

/// A program that is attached to a tracepoint.
#[derive(Debug)]
pub(super) struct TracepointProgram {
    pub(super) program: OwnedFd,
    /// Closing it detaches the program.
    pub(super) link: OwnedFd,
}

impl TracepointProgram {
    /// Loads a program with its maps and attaches it. `tracepoint` is the id of the tracepoint's type in the kernel's BTF; `code` is `None` if it
    /// is too long.
    ///
    /// # Errors
    /// The errors of bpf(2).
    pub(super) fn attach<'m>(
        tracepoint: u32,
        code: Option<Code>,
        descriptor: impl Fn(Map) -> BorrowedFd<'m>,
    ) -> io::Result<Self> {
        let code = code.ok_or_else(|| io::Error::other("the program is too long"))?;
        let program = sys::load(
            ProgramKind::Tracepoint(tracepoint),
            &code.with_maps(descriptor),
        )?;
        let link = sys::link_tracepoint(program.as_fd())?;
        Ok(Self { program, link })
    }
}

/// The error for an object that cannot be created.
pub(super) fn setup(object: &'static str) -> impl FnOnce(io::Error) -> RecordError {
    let error = KernelError::operation(KernelOperation::BpfObject(object));
    move |source| error(source).into()
}

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
