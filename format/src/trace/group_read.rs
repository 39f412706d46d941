//! Reads the counts of group samples once, block by block, so that each block can then be [read independently](super::group_counts).

use super::block::BlockKind;
use super::block_reader::BlockReader;
use super::damage::Damage;
use super::damage_kind::DamageKind;
use super::group_counts::{GroupCounters, GroupReads, MAX_BYTES, MAX_COUNTS, MAX_IDS};
use super::reader::Trace;

/// Finds the counts before each block, if the trace has group samples.
pub(crate) fn find_counts(trace: &mut Trace) {
    let Some(mut reads) = GroupReads::new(&trace.info.events) else {
        return;
    };
    if reads.ids() > MAX_IDS {
        let kind = DamageKind::GroupIds {
            most: MAX_IDS,
            found: reads.ids(),
        };
        trace.damage.push(Damage::new(0, kind));
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
        let kind = DamageKind::GroupSize {
            most: MAX_BYTES,
            samples: counts.left,
        };
        trace.damage.push(Damage::new(offset, kind));
    }
    if counts.untracked > 0 {
        let kind = DamageKind::GroupCounts {
            most: MAX_COUNTS,
            samples: counts.untracked,
        };
        trace.damage.push(Damage::new(0, kind));
    }
    trace.group_reads = Some(reads);
}
