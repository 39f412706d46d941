//! An address of a call chain, and what it says of its frame.

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
