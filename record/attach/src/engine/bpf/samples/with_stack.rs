//! Samples with the callers, or with what they are found from: made of the end of a record of the ring ([`stack`](super::super::program)).

use usdtrec_format::perf::{ChainCut, put_callchain};

use super::super::contract::CHAIN;
use super::super::contract::RAW;
use super::super::program::stack::EndKind;
use super::stack_size::StackUse;
use crate::engine::numbers::u64_at;

/// Where the raw part of a sample begins, with its size: the call chain comes before it.
const RAW_SIZE: usize = RAW - 4;
/// A call chain without callers in the kernel.
const NO_CALLERS: [u8; 8] = [0; 8];
/// Neither registers (`PERF_SAMPLE_REGS_ABI_NONE`) nor a copy: the ABI, and the size.
const NO_COPY: [u8; 16] = [0; 16];

/// Appends a sample without a stack, with what the end of its record has. Appends nothing, and returns `None`, if that is too short.
pub(in crate::engine::bpf) fn put(
    sample: &[u8],
    end: &[u8],
    kind: EndKind,
    out: &mut Vec<u8>,
) -> Option<()> {
    let start = out.len();
    let done = put_all(sample, end, kind, out);
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

fn put_all(sample: &[u8], end: &[u8], kind: EndKind, out: &mut Vec<u8>) -> Option<()> {
    let (head, raw) = sample.split_at_checked(RAW_SIZE)?;
    out.extend_from_slice(head);
    if end.is_empty() {
        put_callchain(&[u64_at(head, 16)?], Some(ChainCut::Rate), out);
        out.extend_from_slice(raw);
        if kind != EndKind::Chain {
            out.extend(NO_COPY);
        }
        return Some(());
    }
    match kind {
        EndKind::Chain => {
            let (cut, callers) = chain(end)?;
            let (callers, _) = callers.as_chunks::<8>();
            let callers = callers.iter().map(|word| u64::from_ne_bytes(*word));
            let ip = u64_at(head, 16)?;
            let addresses: Vec<u64> = std::iter::once(ip).chain(callers).collect();
            put_callchain(&addresses, cut, out);
            out.extend_from_slice(raw);
        }
        EndKind::Nothing => {
            out.extend(NO_CALLERS);
            out.extend_from_slice(raw);
            out.extend_from_slice(end.get(..16)?);
        }
        EndKind::Copy { at } => {
            out.extend(NO_CALLERS);
            out.extend_from_slice(raw);
            put_copy(end, at, out)?;
        }
    }
    Some(())
}

/// Appends the registers and the copy at offset `at`.
fn put_copy(end: &[u8], at: usize, out: &mut Vec<u8>) -> Option<()> {
    let (registers, bytes) = end.split_at_checked(at)?;
    let (registers, copied) = registers.split_last_chunk::<8>()?;
    let copied = usize::try_from(u64::from_ne_bytes(*copied)).ok()?;
    let copied = copied.min(bytes.len());
    let padded = copied.next_multiple_of(8).min(bytes.len());
    out.extend_from_slice(registers);
    out.extend((padded as u64).to_ne_bytes());
    if padded > 0 {
        out.extend_from_slice(bytes.get(..padded)?);
        out.extend((copied as u64).to_ne_bytes());
    }
    Some(())
}

/// The reason of a cut, and the return addresses, of the end of a record by frame pointers.
pub(in crate::engine::bpf) fn chain(end: &[u8]) -> Option<(Option<ChainCut>, &[u8])> {
    let (cut, count) = (u64_at(end, 0)?, u64_at(end, 8)?);
    let count = usize::try_from(count).ok()?;
    let callers = end.get(CHAIN..CHAIN + count.checked_mul(8)?)?;
    Some((ChainCut::of_marks(cut), callers))
}

/// Counts the frames of the end of a record by frame pointers.
pub(super) fn count_frames(end: &[u8], used: &mut StackUse) {
    let Some((cut, callers)) = chain(end) else {
        return;
    };
    let room = (end.len() - CHAIN) / 8;
    match cut {
        Some(ChainCut::NoRoom) => used.count_cut(room as u32),
        _ => used.count(callers.len() as u32 / 8 + 1),
    }
}
