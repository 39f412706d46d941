//! Counting the samples of groups once, block by block, so that each block can be [read on its own](super::group_counts).

use super::block::BlockKind;
use super::block_reader::BlockReader;
use super::damage::Damage;
use super::group_counts::{Counts, GroupReads, MOST_BYTES, MOST_IDS};
use super::reader::Trace;

/// Finds whether samples of a trace have counts, and what was counted before each block.
pub(crate) fn find_counts(trace: &mut Trace) {
    let Some(mut reads) = GroupReads::new(&trace.info.events) else {
        return;
    };
    if reads.ids() > MOST_IDS {
        let what = format!(
            "counts of more than {MOST_IDS} events of a CPU: samples of groups are shown as events of their leader only"
        );
        trace.damage.push(Damage::lost(0, what));
        return;
    }
    let (mut reader, mut counts, mut out) = (BlockReader::new(), Counts::default(), Vec::new());
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
            "samples of groups of which a block of the file would become more than {} MiB: {} were not taken apart into events of \
             the groups' members",
            MOST_BYTES >> 20,
            counts.left
        );
        trace.damage.push(Damage::lost(offset, what));
    }
    trace.group_reads = Some(reads);
}
