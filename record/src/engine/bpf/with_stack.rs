//! Samples with the callers, or with what they are found from: made of the end of a record of the ring ([`stack`](super::program)).

use usdtrec_format::Arch;
use usdtrec_format::perf::{ChainCut, put_callchain};

use super::program::RAW;
use crate::plan::call_graph::{CallGraph, CallGraphMethod, registers};

/// Where the raw part of a sample begins, with its size: the call chain comes before it.
const RAW_SIZE: usize = RAW - 4;

/// Appends a sample without a stack, with what the end of its record has. Appends nothing, and returns `None`, if that is too short.
pub(super) fn put(
    sample: &[u8],
    end: &[u8],
    graph: CallGraph,
    arch: Arch,
    out: &mut Vec<u8>,
) -> Option<()> {
    let start = out.len();
    let done = put_all(sample, end, graph, arch, out);
    let size = u16::try_from(out.len() - start).ok();
    match (done, size, out.get_mut(start + 6..start + 8)) {
        (Some(()), Some(size), Some(place)) => {
            place.copy_from_slice(&size.to_ne_bytes());
            Some(())
        }
        _ => {
            out.truncate(start);
            None
        }
    }
}

fn put_all(
    sample: &[u8],
    end: &[u8],
    graph: CallGraph,
    arch: Arch,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (head, raw) = sample.split_at_checked(RAW_SIZE)?;
    out.extend_from_slice(head);
    if graph.method == CallGraphMethod::FramePointers {
        let (cut, count) = (word(end, 0)?, word(end, 8)?);
        let count = usize::try_from(count).ok()?;
        let (callers, _) = end.get(16..16 + count.checked_mul(8)?)?.as_chunks::<8>();
        let callers = callers.iter().map(|word| u64::from_ne_bytes(*word));
        let ip = word(head, 16)?;
        let addresses: Vec<u64> = std::iter::once(ip).chain(callers).collect();
        put_callchain(&addresses, ChainCut::of_marks(cut), out);
        out.extend_from_slice(raw);
        return Some(());
    }
    // No callers in the kernel.
    out.extend(0_u64.to_ne_bytes());
    out.extend_from_slice(raw);
    let stack = 8 + 8 * registers(arch).len();
    out.extend_from_slice(end.get(..stack)?);
    let room = usize::try_from(word(end, stack)?).ok()?;
    let bytes = end.get(stack + 8..)?;
    let copied = match room {
        0 => 0,
        room => usize::try_from(word(bytes, room)?).ok()?.min(room),
    };
    let padded = copied.next_multiple_of(8).min(room);
    out.extend((padded as u64).to_ne_bytes());
    if padded > 0 {
        out.extend_from_slice(bytes.get(..padded)?);
        out.extend((copied as u64).to_ne_bytes());
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*word))
}
