//! Programs on tracepoints of the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use usdtrec_kernel::bpf::insn::{Code, Map};
use usdtrec_kernel::bpf::sys::{self, ProgramKind};

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
    /// Those of bpf(2).
    pub(super) fn attach<'m>(
        tracepoint: u32,
        code: Option<Code>,
        descriptor: impl Fn(Map) -> BorrowedFd<'m>,
    ) -> io::Result<Self> {
        let code = code.ok_or_else(|| io::Error::other("a program too long"))?;
        let program = sys::load(
            ProgramKind::Tracepoint(tracepoint),
            &code.with_maps(descriptor),
        )?;
        let link = sys::link_tracepoint(program.as_fd())?;
        Ok(Self { program, link })
    }
}
