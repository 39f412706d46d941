//! Reads the counts of group samples once, block by block, so that each block can then be [read independently](super::group_counts).

use super::block::BlockKind;
use super::block_reader::BlockReader;
use super::damage::Damage;
use super::group_counts::{GroupCounters, GroupReads, MAX_BYTES, MAX_COUNTS, MAX_IDS};
use super::reader::Trace;

/// Finds the counts before each block, if the trace has group samples.
pub(crate) fn find_counts(trace: &mut Trace) {
    let Some(mut reads) = GroupReads::new(&trace.info.events) else {
        return;
    };
    if reads.ids() > MAX_IDS {
        let what = format!(
            "expected counts of at most {MAX_IDS} ids, found {}: group samples are shown as events of their leader only",
            reads.ids()
        );
        trace.damage.push(Damage::lost(0, what));
        return;
    }
    let (mut reader, mut counts, mut out) =
        (BlockReader::new(), GroupCounters::default(), Vec::new());
    let mut first_left = None;
    for number in 0..trace.blocks.len() {
        let Some(block) = trace.blocks.get(number).copied() else {
            break;
        };
        // Damage is reported when the block is read again.
        let Ok(records) = reader.read(trace, &block) else {
            continue;
        };
        let samples = reads.count_block(block.offset, records, &mut counts, &mut out);
        if counts.left > 0 {
            first_left.get_or_insert(block.offset);
        }
        if let (BlockKind::Plain, Some(block)) = (block.kind, trace.blocks.get_mut(number)) {
            block.samples = Some(samples);
        }
    }
    if let Some(offset) = first_left {
        let what = format!(
            "group samples: a block would exceed {} MiB: {} samples were not split into events of the members",
            MAX_BYTES >> 20,
            counts.left
        );
        trace.damage.push(Damage::lost(offset, what));
    }
    if counts.untracked > 0 {
        let what = format!(
            "expected at most {MAX_COUNTS} counts of events and threads, found more: {} group samples of members are left out",
            counts.untracked
        );
        trace.damage.push(Damage::lost(0, what));
    }
    trace.group_reads = Some(reads);
}
