//! An address of a call chain, and what it says of its frame; functions that have no caller.

use usdtrec_format::perf::Sample;

/// An address of a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainAddress {
    /// The address.
    pub address: u64,
    pub(crate) kind: FrameKind,
}

/// What an address in a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Of the instruction that is executed next: that with the probe, or that a signal interrupted.
    Hit,
    /// Of a caller: within the call, or after it.
    Caller,
}

impl ChainAddress {
    /// Where a sample hit.
    pub(crate) const fn hit(sample: &Sample<'_>) -> Self {
        Self {
            address: sample.ip,
            kind: FrameKind::Hit,
        }
    }
}

impl FrameKind {
    /// The address, or the file offset, of an instruction of the frame.
    pub(crate) const fn instruction(self, address: u64) -> u64 {
        match self {
            Self::Hit => address,
            // An address after the call may be another function's, or another line's.
            Self::Caller => address.saturating_sub(1),
        }
    }
}

/// Beginnings of the names of functions that have no caller: of programs, of threads, and of coroutines.
const OUTERMOST: [&str; 17] = [
    "_start",
    "__libc_start",
    "__libc_init_first",
    "generic_start_main",
    "libc_start_main",
    "_dl_start",
    "start_thread",
    "__start_context",
    "thread_start",
    "clone",
    "__clone",
    "__GI___clone",
    "__thread_start",
    "__pthread_start",
    "runtime.goexit",
    "runtime.rt0_go",
    "runtime.mstart",
];

/// What handlers of signals return to, in glibc, musl and the kernel's vDSO.
const SIGNAL_RETURNS: [&str; 6] = [
    "__restore_rt",
    "__restore",
    "__kernel_rt_sigreturn",
    "__kernel_sigreturn",
    "__vdso_rt_sigreturn",
    "__default_rt_sa_restorer",
];

/// Whether a function of this name has no caller.
pub(crate) fn is_outermost(name: &str) -> bool {
    OUTERMOST.iter().any(|start| name.starts_with(start))
}

/// Whether handlers of signals return to the start of a function of this name.
pub(crate) fn is_signal_return(name: &str) -> bool {
    SIGNAL_RETURNS.contains(&name)
}
