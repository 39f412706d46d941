//! The index: the file offsets, record counts and time ranges of all chunks and runs of plain records.
//!
//! The index is a linked list of nodes, each of which has the offset of the previous one. The newest node follows the feature table, where
//! a reader of the header finds it (see [`footer`](super::footer)). A node has the entries of one flush. After 1024 entries they are all
//! written again as a page, and the next node refers to that page instead of the nodes that it replaces. So the writer keeps at most one
//! page in memory, and a reader reads few nodes.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTINDX` |
//! | 8 | 4 | CRC-32 (IEEE) of the rest of the node |
//! | 12 | 4 | length of the node, bytes, including this table |
//! | 16 | 2 | version: 1, or 2 with checksums of the head, which readers of version 1 ignore |
//! | 18 | 2 | flags: bit 0 the recorder ended and wrote its losses; bit 1 the time range of the recording follows; bit 2 the recorder has not ended, and the losses are those counted so far; bit 3 CPUs went off line or came on line while recording with perf events: hits there are missing and not counted as lost; bit 4 the offset of clock readings follows; bit 5 the offset of a piece of the head follows |
//! | 20 | 4 | number of entries |
//! | 24 | 4 | number of losses |
//! | 28 | 4 | 0 |
//! | 32 | 8 | file offset of the previous node; 0 if there is none |
//! | 40 | 8 | number of samples in the file so far |
//! | 48 | 8 | length of all records so far before compression, bytes |
//! | 56 | 8 | number of chunks and runs of plain records so far |
//! | 64 | 8 | file offset of the newest [`digest`](super::digest); 0 if there is none |
//! | 72 | 48 each | entries: offset (8), length (4), length of the records (4), number of records (4), number of samples (4), earliest time (8), latest time (8), flags (4; bit 0 metadata), 0 (4) |
//! | | 24 each | losses: event (4), 0 (4), id (8), lost (8) |
//! | | 16 | if flag bit 1 is set: time at which recording began (8), time up to which events are in the file (8), ns of the trace's clock |
//! | | | version 2: [checksums of the head](super::head_sums) |
//! | | 8 | if flag bit 4 is set: file offset of the newest [`clock readings`](super::clock_readings) |
//! | | 8 | if flag bit 5 is set: file offset of the newest [piece of the head](super::added_piece) since the last whole one |

use super::Loss;
use super::head_sums::HeadSums;
use super::record_counts::RecordCounts;
use super::time_range::TimeRange;
use crate::perf::cursor::Cursor;

const MAGIC: [u8; 8] = *b"USDTINDX";
/// Versions without and with checksums of the head.
const VERSIONS: [u16; 2] = [1, 2];
const FINISHED: u16 = 1;
const RECORDED: u16 = 2;
const COUNTED: u16 = 4;
const CPUS_CHANGED: u16 = 8;
const CLOCKS: u16 = 16;
const ADDED: u16 = 32;
const METADATA: u32 = 1;
/// Offset after the CRC, from the start of the node.
const CRC_FROM: usize = 12;
/// Size of a node without entries and losses, bytes.
pub(crate) const NODE: usize = 72;
/// Size of a loss, bytes.
pub(crate) const LOSS: usize = 24;
/// Maximum length of a node, bytes. The losses of 500 events with an id for each of 1000 CPUs take 12 MB.
pub(crate) const MAX_NODE: usize = 16 << 20;
/// Number of entries in a page.
pub(crate) const PAGE_ENTRIES: usize = 1024;

/// A chunk or a run of plain records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// File offset.
    pub(crate) offset: u64,
    /// Length in the file, bytes.
    pub(crate) len: u32,
    /// Length of the records, bytes.
    pub(crate) raw_len: u32,
    /// Counts of the records.
    pub(crate) counts: RecordCounts,
    /// Whether the records are metadata (anything but samples).
    pub(crate) metadata: bool,
}

/// Totals of a file up to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunningTotals {
    /// Number of samples.
    pub(crate) samples: u64,
    /// Length of the records before compression, bytes.
    pub(crate) raw_bytes: u64,
    /// Number of chunks and runs of plain records.
    pub(crate) chunks: u64,
}

/// A node of the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexNode {
    /// Whether the recorder ended and wrote its losses.
    pub(crate) finished: bool,
    /// Whether the losses are those counted so far by a recorder that has not ended.
    pub(crate) counted: bool,
    /// File offset of the previous node; 0 if there is none.
    pub(crate) previous: u64,
    /// Totals.
    pub(crate) totals: RunningTotals,
    /// File offset of the newest digest; 0 if there is none.
    pub(crate) digest: u64,
    /// Chunks and runs of plain records, in file order.
    pub(crate) entries: Vec<IndexEntry>,
    /// Losses; only in a node that is `finished` or `counted`.
    pub(crate) losses: Vec<Loss>,
    /// Whether CPUs went off line or came on line while recording with perf events.
    pub(crate) cpus_changed: bool,
    /// Time at which recording began, and time up to which events are in the file, ns.
    pub(crate) recorded: Option<TimeRange>,
    /// Checksums of the head; pages have none.
    pub(crate) head: Option<HeadSums>,
    /// File offset of the newest clock readings; 0 if there are none. Pages have none.
    pub(crate) clocks: u64,
    /// File offset of the newest piece of the head since the last whole one; 0 if there is none. Pages have none.
    pub(crate) added: u64,
}

impl IndexNode {
    /// Appends the encoded node.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let flags = flag(self.finished, FINISHED)
            | flag(self.recorded.is_some(), RECORDED)
            | flag(self.counted, COUNTED)
            | flag(self.cpus_changed, CPUS_CHANGED)
            | flag(self.clocks != 0, CLOCKS)
            | flag(self.added != 0, ADDED);
        out.extend(MAGIC);
        out.extend([0; 8]);
        out.extend(VERSIONS[usize::from(self.head.is_some())].to_le_bytes());
        out.extend(flags.to_le_bytes());
        out.extend((self.entries.len() as u32).to_le_bytes());
        out.extend((self.losses.len() as u32).to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.previous.to_le_bytes());
        out.extend(self.totals.samples.to_le_bytes());
        out.extend(self.totals.raw_bytes.to_le_bytes());
        out.extend(self.totals.chunks.to_le_bytes());
        out.extend(self.digest.to_le_bytes());
        for entry in &self.entries {
            entry.encode(out);
        }
        for loss in &self.losses {
            out.extend((loss.event as u32).to_le_bytes());
            out.extend([0; 4]);
            out.extend(loss.id.to_le_bytes());
            out.extend(loss.lost.to_le_bytes());
        }
        if let Some(TimeRange { first, last }) = self.recorded {
            out.extend(first.to_le_bytes());
            out.extend(last.to_le_bytes());
        }
        if let Some(head) = &self.head {
            head.encode(out);
        }
        if self.clocks != 0 {
            out.extend(self.clocks.to_le_bytes());
        }
        if self.added != 0 {
            out.extend(self.added.to_le_bytes());
        }
        let len = (out.len() - start) as u32;
        out[start + CRC_FROM..start + CRC_FROM + 4].copy_from_slice(&len.to_le_bytes());
        let crc = crc32fast::hash(&out[start + CRC_FROM..]);
        out[start + 8..start + CRC_FROM].copy_from_slice(&crc.to_le_bytes());
    }

    /// The length of a node, from its first [`NODE`] bytes; `None` if they are not the start of a node, or the length is invalid.
    pub(crate) fn claimed_len(start: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::new(start);
        if cursor.take(8)? != MAGIC.as_slice() {
            return None;
        }
        cursor.u32()?;
        let len = cursor.u32()? as usize;
        (NODE..=MAX_NODE).contains(&len).then_some(len)
    }

    /// Parses a node; `None` if it is not a node, or is damaged.
    pub(crate) fn parse(node: &[u8]) -> Option<Self> {
        let len = Self::claimed_len(node)?;
        let node = node.get(..len)?;
        let mut cursor = Cursor::new(node);
        cursor.take(8)?;
        if cursor.u32()? != crc32fast::hash(&node[CRC_FROM..]) {
            return None;
        }
        cursor.u32()?;
        let has_head = cursor.u16()? >= VERSIONS[1];
        let flags = cursor.u16()?;
        let (entries, losses) = (cursor.u32()?, cursor.u32()?);
        cursor.u32()?;
        let previous = cursor.u64()?;
        let totals = RunningTotals {
            samples: cursor.u64()?,
            raw_bytes: cursor.u64()?,
            chunks: cursor.u64()?,
        };
        let digest = cursor.u64()?;
        let entries = (0..entries).map(|_| IndexEntry::parse(&mut cursor));
        let entries = entries.collect::<Option<_>>()?;
        let losses = (0..losses).map(|_| parse_loss(&mut cursor));
        let losses = losses.collect::<Option<_>>()?;
        let recorded = match flags & RECORDED {
            0 => None,
            _ => Some(TimeRange::take(&mut cursor)?),
        };
        let head = if has_head {
            Some(HeadSums::parse(&mut cursor)?)
        } else {
            None
        };
        let clocks = match flags & CLOCKS {
            0 => 0,
            _ => cursor.u64()?,
        };
        let added = match flags & ADDED {
            0 => 0,
            _ => cursor.u64()?,
        };
        Some(Self {
            finished: flags & FINISHED != 0,
            counted: flags & COUNTED != 0,
            cpus_changed: flags & CPUS_CHANGED != 0,
            previous,
            totals,
            digest,
            entries,
            losses,
            recorded,
            head,
            clocks,
            added,
        })
    }
}

impl IndexEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        let TimeRange { first, last } = self.counts.time().unwrap_or_default();
        out.extend(self.offset.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend(self.raw_len.to_le_bytes());
        out.extend(self.counts.records.to_le_bytes());
        out.extend(self.counts.samples.to_le_bytes());
        out.extend(first.to_le_bytes());
        out.extend(last.to_le_bytes());
        out.extend((if self.metadata { METADATA } else { 0 }).to_le_bytes());
        out.extend([0; 4]);
    }

    fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        let offset = cursor.u64()?;
        let (len, raw_len) = (cursor.u32()?, cursor.u32()?);
        let (records, samples) = (cursor.u32()?, cursor.u32()?);
        let time = TimeRange::take(cursor)?;
        let metadata = cursor.u32()? & METADATA != 0;
        cursor.u32()?;
        Some(Self {
            offset,
            len,
            raw_len,
            counts: RecordCounts::from_parts(records, samples, time),
            metadata,
        })
    }
}

fn parse_loss(cursor: &mut Cursor<'_>) -> Option<Loss> {
    let event = cursor.u32()? as usize;
    cursor.u32()?;
    Some(Loss {
        event,
        id: cursor.u64()?,
        lost: cursor.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::header::{FileHeader, Section};

    #[test]
    fn a_node_round_trips_and_any_flip_shows() {
        let head = HeadSums {
            header: FileHeader {
                attr_size: 1,
                attrs: Section { offset: 2, size: 3 },
                data: Section { offset: 4, size: 0 },
                features: [5, 6, 7, 8],
            },
            attrs: 9,
            table: 10,
            features: vec![11, 12],
        };
        let node = IndexNode {
            finished: true,
            counted: false,
            cpus_changed: true,
            previous: 70000,
            totals: RunningTotals {
                samples: 1,
                raw_bytes: 2,
                chunks: 3,
            },
            digest: 66000,
            entries: vec![IndexEntry {
                offset: 65536,
                len: 10,
                raw_len: 100,
                counts: RecordCounts::from_parts(4, 3, TimeRange::new(7, 9)),
                metadata: true,
            }],
            losses: vec![Loss {
                event: 1,
                id: 55,
                lost: 66,
            }],
            recorded: Some(TimeRange::new(5, 11)),
            head: Some(head),
            clocks: 65_900,
            added: 65_950,
        };
        let mut bytes = Vec::new();
        node.encode(&mut bytes);
        let head = FileHeader::LEN + 6 * size_of::<u32>();
        let (entry, times, offsets) = (48, 16, 16);
        assert_eq!(bytes.len(), NODE + entry + LOSS + times + head + offsets);
        assert_eq!(IndexNode::parse(&bytes).as_ref(), Some(&node));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert_eq!(IndexNode::parse(&flipped), None, "byte {at}");
        }
    }
}
