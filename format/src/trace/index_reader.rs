//! Reads the index, from its newest node back to the first.

use std::ops::Range;

use super::block::{Block, BlockKind};
use super::chunk::MAX_RAW;
use super::index::{IndexEntry, IndexNode, MAX_NODE, NODE};
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::perf::header::Section;

/// Maximum number of blocks for which memory is reserved at once, because a node may claim any number.
const MAX_EXPECTED: u64 = 1 << 17;
/// Maximum length of all that may be the newest node, bytes: what begins as a node may claim any length, in many places of a file.
pub(crate) const MAX_CANDIDATES: usize = 4 * MAX_NODE;

/// The contents of the index.
#[derive(Debug)]
pub(crate) struct IndexContents {
    /// Blocks in file order.
    pub(crate) blocks: Vec<Block>,
    /// The newest node, without its entries.
    pub(crate) newest: IndexNode,
    /// File offset after the newest node.
    pub(crate) newest_end: u64,
    /// End of the part of the data, from its start, that the index does not describe because a node is damaged or missing; `None` if the
    /// index is complete.
    pub(crate) gap_end: Option<u64>,
}

/// Reads the index whose newest node is at a file offset; `None` if there is no node. `data` is the range of the data.
///
/// Each node must be before the node that refers to it, and the entries must be in the data, in order and without overlap, so that the
/// work is bounded by the file's length.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read(
    source: &TraceFiles,
    newest_at: u64,
    data: Range<u64>,
) -> Result<Option<IndexContents>, ReadError> {
    let Some(mut newest) = read_node(source, newest_at, u64::MAX)? else {
        return Ok(None);
    };
    let len = IndexNode::claimed_len(&source.bytes(newest_at, NODE)?).unwrap_or(0);
    let mut blocks = Vec::with_capacity(newest.totals.chunks.min(MAX_EXPECTED) as usize);
    // The data from here on are described by nodes read so far.
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
        let Some(node) = read_node(source, previous, at)? else {
            break Some(known_from);
        };
        at = previous;
        previous = node.previous;
        entries = node.entries;
    };
    blocks.reverse();
    Ok(Some(IndexContents {
        blocks,
        newest,
        newest_end: newest_at + len as u64,
        gap_end,
    }))
}

/// Whether the numbers of blocks and samples are those of the newest node. If not, a node is missing.
fn is_whole(newest: &IndexNode, blocks: &[Block]) -> bool {
    let samples = blocks.iter().filter_map(|block| block.samples);
    newest.totals.chunks == blocks.len() as u64
        && newest.totals.samples == samples.map(u64::from).sum::<u64>()
}

/// Finds the newest node of a file whose data end at `data_end`, and its offset. It follows the feature table, whose length is unknown if
/// the header is damaged. `room` is the number of bytes that may be read of candidates, which is reduced; longer ones are left out.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn newest_node(
    source: &TraceFiles,
    data_end: u64,
    room: &mut usize,
) -> Result<Option<(u64, IndexNode)>, ReadError> {
    const MAX_TABLE: usize = 256 * Section::LEN;
    let bytes = source.bytes(data_end, MAX_TABLE + NODE)?;
    for table in (0..=MAX_TABLE).step_by(Section::LEN) {
        let len = bytes
            .get(table..table + NODE)
            .and_then(IndexNode::claimed_len);
        let Some(left) = len.and_then(|len| room.checked_sub(len)) else {
            continue;
        };
        *room = left;
        let at = data_end + table as u64;
        if let Some(node) = read_node(source, at, u64::MAX)? {
            return Ok(Some((at, node)));
        }
    }
    Ok(None)
}

/// Reads the node at an offset; `None` if there is none, it is damaged, or it does not end before `limit`.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read_node(
    source: &TraceFiles,
    at: u64,
    limit: u64,
) -> Result<Option<IndexNode>, ReadError> {
    let start = source.bytes(at, NODE)?;
    let Some(len) = IndexNode::claimed_len(&start) else {
        return Ok(None);
    };
    if at.saturating_add(len as u64) > limit.min(source.len()) {
        return Ok(None);
    }
    Ok(IndexNode::parse(&source.bytes(at, len)?))
}

/// Appends the entries as blocks, in reverse order, and returns the offset of the first entry. `None`, without appending any, if they are
/// not in order within `room`.
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
        // A chunk is always shorter than its records.
        kind: if entry.len == entry.raw_len {
            BlockKind::Plain
        } else {
            BlockKind::Chunk
        },
        offset: entry.offset,
        len: u64::from(entry.len),
        raw_len: entry.raw_len,
        samples: Some(entry.counts.samples),
        time: entry.counts.time(),
        metadata: entry.metadata,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn candidates_have_a_common_limit() {
        let mut node = Vec::new();
        IndexNode::default().encode(&mut node);
        let mut damaged = node.clone();
        damaged[8] ^= 1;
        damaged.resize(node.len().next_multiple_of(Section::LEN), 0);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[damaged.as_slice(), &node].concat())
            .unwrap();
        let source = TraceFiles::new(vec![file]).unwrap();
        let mut room = 2 * node.len();
        let found = newest_node(&source, 0, &mut room).unwrap();
        assert_eq!(found.map(|(at, _)| at), Some(damaged.len() as u64));
        assert_eq!(room, 0);
        room = 2 * node.len() - 1;
        let found = newest_node(&source, 0, &mut room).unwrap();
        assert!(found.is_none());
    }
}
