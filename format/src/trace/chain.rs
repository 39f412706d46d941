//! Reading the index: from its newest node back to the first.

use std::io;
use std::ops::Range;

use super::block::{Block, BlockKind};
use super::chunk::MAX_RAW;
use super::index::{IndexEntry, IndexNode, NODE};
use super::source::Source;
use crate::perf::header::Section;

/// Blocks that there is room for from the start; a node may claim any number.
const MOST_EXPECTED: u64 = 1 << 17;

/// What the index says.
#[derive(Debug)]
pub(crate) struct Chain {
    /// Blocks in file order.
    pub(crate) blocks: Vec<Block>,
    /// The newest node, without its entries.
    pub(crate) newest: IndexNode,
    /// Where the index does not reach, because a node is damaged or missing: from the data's start to here there may be more blocks.
    pub(crate) gap_end: Option<u64>,
}

/// Walks the chain from the node at a file offset. `data` is where the data are.
///
/// Every node must lie before the one that names it, and every entry in the data, in order and without overlap: so the
/// work is bounded by the file's length, whatever is in it. `None` if there is no node.
///
/// # Errors
/// The system call's.
pub(crate) fn walk(source: &Source, newest_at: u64, data: Range<u64>) -> io::Result<Option<Chain>> {
    let Some(mut newest) = node(source, newest_at, u64::MAX)? else {
        return Ok(None);
    };
    let mut blocks = Vec::with_capacity(newest.totals.chunks.min(MOST_EXPECTED) as usize);
    // Everything from here on is known.
    let mut known_from = data.end;
    let mut entries = std::mem::take(&mut newest.entries);
    let (mut at, mut previous) = (newest_at, newest.previous);
    let gap_end = loop {
        let Some(from) = take(&entries, data.start..known_from, &mut blocks) else {
            break Some(known_from);
        };
        known_from = from;
        if previous == 0 {
            break (!is_whole(&newest, &blocks)).then_some(known_from);
        }
        let Some(node) = node(source, previous, at)? else {
            break Some(known_from);
        };
        at = previous;
        previous = node.previous;
        entries = node.entries;
    };
    blocks.reverse();
    Ok(Some(Chain {
        blocks,
        newest,
        gap_end,
    }))
}

/// Whether these are as many blocks and samples as the newest node counts: else the chain ends too early.
fn is_whole(newest: &IndexNode, blocks: &[Block]) -> bool {
    let samples = blocks.iter().filter_map(|block| block.samples);
    newest.totals.chunks == blocks.len() as u64
        && newest.totals.samples == samples.map(u64::from).sum::<u64>()
}

/// The newest node of a file whose data end at `data_end`, and its offset: it stands behind the feature table, which may have any
/// length if the header is damaged.
///
/// # Errors
/// The system call's.
pub(crate) fn newest(source: &Source, data_end: u64) -> io::Result<Option<(u64, IndexNode)>> {
    const MAX_TABLE: usize = 256 * Section::LEN;
    let bytes = source.bytes(data_end, MAX_TABLE + NODE)?;
    for table in (0..=MAX_TABLE).step_by(Section::LEN) {
        let is_node = |start: &[u8]| IndexNode::claimed_len(start).is_some();
        let at = data_end + table as u64;
        if bytes.get(table..table + NODE).is_some_and(is_node)
            && let Some(node) = node(source, at, u64::MAX)?
        {
            return Ok(Some((at, node)));
        }
    }
    Ok(None)
}

/// The node at an offset, which must end before `limit`.
///
/// # Errors
/// The system call's.
pub(crate) fn node(source: &Source, at: u64, limit: u64) -> io::Result<Option<IndexNode>> {
    let start = source.bytes(at, NODE)?;
    let Some(len) = IndexNode::claimed_len(&start) else {
        return Ok(None);
    };
    if at.saturating_add(len as u64) > limit.min(source.len()) {
        return Ok(None);
    }
    Ok(IndexNode::parse(&source.bytes(at, len)?))
}

/// Appends entries as blocks, the last first, and returns the offset of the first. `None`, and nothing is
/// appended, if they are not in order within `room`.
fn take(entries: &[IndexEntry], room: Range<u64>, blocks: &mut Vec<Block>) -> Option<u64> {
    let mut at = room.start;
    for entry in entries {
        let end = entry.offset.checked_add(u64::from(entry.len))?;
        if entry.offset < at || end > room.end || entry.len == 0 || entry.raw_len as usize > MAX_RAW
        {
            return None;
        }
        at = end;
    }
    blocks.extend(entries.iter().rev().map(block));
    Some(entries.first().map_or(room.end, |first| first.offset))
}

fn block(entry: &IndexEntry) -> Block {
    Block {
        // A chunk is only made where it is shorter than its records.
        kind: if entry.len == entry.raw_len {
            BlockKind::Plain
        } else {
            BlockKind::Chunk
        },
        offset: entry.offset,
        len: u64::from(entry.len),
        raw_len: entry.raw_len,
        samples: Some(entry.tally.samples),
        time: entry.tally.time(),
        metadata: entry.metadata,
    }
}
