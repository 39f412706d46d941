//! A sample with its callers instead of registers and a copy of the stack.

use usdtrec_format::perf::{ChainCut, Sample, put_callchain};

/// Size of the parts before the call chain, with the record header, bytes: `IDENTIFIER`, `IP`, `TID`, `TIME`, `CPU`.
const HEAD: usize = 48;

/// The callers of a sample.
#[derive(Clone, Copy)]
pub(super) struct Callers<'a> {
    /// The innermost address first.
    pub(super) addresses: &'a [u64],
    pub(super) cut: Option<ChainCut>,
    /// Whether registers are written, too.
    pub(super) keeps_registers: bool,
}

/// Appends a sample with a call chain in place of its copy.
pub(super) fn rewrite(whole: &[u8], sample: &Sample<'_>, callers: Callers<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(whole.get(..HEAD).unwrap_or_default());
    put_callchain(callers.addresses, callers.cut, out);
    if !sample.raw.is_empty() {
        out.extend((sample.raw.len() as u32).to_ne_bytes());
        out.extend_from_slice(sample.raw);
    }
    if callers.keeps_registers {
        out.extend(sample.regs_abi.to_ne_bytes());
        out.extend_from_slice(sample.regs);
    }
    // A sample has at most 64 KiB, of which the copy was more than the callers take.
    let size = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    if let Some(place) = out.get_mut(start + 6..start + 8) {
        place.copy_from_slice(&size.to_ne_bytes());
    }
}
