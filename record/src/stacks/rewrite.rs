//! A sample with its callers instead of registers and a copy of the stack.

use usdtrec_format::perf::{ChainCut, Sample, put_callchain};

/// Size of the parts before the call chain, with the record header, bytes: `IDENTIFIER`, `IP`, `TID`, `TIME`, `CPU`.
const HEAD: usize = 48;

/// Appends a sample with a call chain in place of its copy.
pub(super) fn rewrite(
    whole: &[u8],
    sample: &Sample<'_>,
    addresses: &[u64],
    cut: Option<ChainCut>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(whole.get(..HEAD).unwrap_or_default());
    put_callchain(addresses, cut, out);
    if !sample.raw.is_empty() {
        out.extend((sample.raw.len() as u32).to_ne_bytes());
        out.extend_from_slice(sample.raw);
    }
    // A sample has at most 64 KiB, of which the copy was more than the callers take.
    let size = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    if let Some(place) = out.get_mut(start + 6..start + 8) {
        place.copy_from_slice(&size.to_ne_bytes());
    }
}
