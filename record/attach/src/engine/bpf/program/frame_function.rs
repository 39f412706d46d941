//! A function of the program that follows frame pointers, as the program knows it before it is written.

use usdtrec_format::Arch;
use usdtrec_kernel::bpf::insn::Label;

/// Offset of the return addresses in the end of a record.
pub(in crate::engine::bpf) const CHAIN: usize = 16;

/// What is known of the end of the record while the program is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum EndSize {
    /// Its size is in its slot; this is the largest.
    InSlot { largest: usize },
    /// Its size, and whether there is no larger one.
    Known { bytes: usize, is_largest: bool },
}

/// A function of the program that follows frame pointers, for ends of one size.
///
/// The verifier follows the loop frame by frame. It checks a function once, but code that is not in a function for each state of the rest of the
/// program: up to 700,000 instructions, which take some seconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct FrameFunction {
    pub(super) arch: Arch,
    pub(super) end: EndSize,
    pub(super) label: Label,
}
