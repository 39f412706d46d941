//! The rolling footer, which makes the file complete after each flush.
//!
//! perf reads the feature table at the end of the data. After each flush a type-65 record, which perf ignores, is appended, and one
//! 8-byte write moves the end of the data to 8 bytes after its start:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 65, size |
//! | | | *the data end here* |
//! | 8 | 16 each | feature table |
//! | | | newest node of the [`index`](super::index) |
//!
//! The next flush appends after this record, which then is one more ignored record. Until the 8-byte write of that flush (a longer one
//! where [events were added](super::added_events)), the contents of the trace do not change. When the recorder ends normally, the data end between two records, and the table and the last node follow
//! without a record around them.
//!
//! A pass over the rings that finds more than a megabyte is written in parts, each of them committed; the round ends
//! with the last part. With several threads, up to four parts for each helper are being compressed and are not
//! committed yet. A killed recorder loses at most what was not flushed.
//!
//! A power failure can lose more: until the file ends (fdatasync), the kernel writes the data back in any order. A
//! compressed block that was not written fails its CRC, and only that block is lost. Recording with
//! `--switch-output=TIME` limits the loss.
//!
//! There are no feature bits and record types that perf does not know: `perf inject` and perf 6.1 fail on them.

use super::head_sums::HeadSums;
use super::index::{IndexEntry, IndexNode, PAGE_ENTRIES, RunningTotals};
use super::time_range::TimeRange;
use crate::perf::RecordType;

/// Minimum size of a type-65 record, bytes. perf 6.1 reads a fixed part of it before it ignores it.
pub(crate) const MIN_RECORD: usize = 80;

/// Appends a type-65 record. Returns the offset of its payload in `out`.
pub(crate) fn put_ignored_record(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend(RecordType::HEADER_EVENT_TYPE.0.to_le_bytes());
    out.extend([0; 4]);
    payload(out);
    let size = (out.len() - start).next_multiple_of(8).max(MIN_RECORD);
    out.resize(start + size, 0);
    out[start + 6..start + 8].copy_from_slice(&(size as u16).to_le_bytes());
    start + 8
}

/// The writer's state of the index: the entries that are not in a page yet, and the offsets of the newest nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexTail {
    /// Entries since the last page.
    since_page: Vec<IndexEntry>,
    /// Number of these that are in nodes already.
    written: usize,
    /// File offset of the newest page.
    page: u64,
    /// File offset of the newest node.
    newest: u64,
    /// File offset of the newest digest; 0 if there is none.
    pub(crate) digest: u64,
    /// File offset of the newest clock readings; 0 if there are none.
    pub(crate) clocks: u64,
    /// File offset of the newest piece of the head since the last whole one; 0 if there is none.
    pub(crate) added: u64,
    /// Totals of the file.
    pub(crate) totals: RunningTotals,
    /// Whether CPUs went off line or came on line while recording with perf events.
    pub(crate) cpus_changed: bool,
    /// Time at which recording began, and time up to which events are in the file, ns.
    pub(crate) recorded: Option<TimeRange>,
}

impl IndexTail {
    /// Adds an entry.
    pub(crate) fn add(&mut self, entry: IndexEntry) {
        self.totals.samples += u64::from(entry.counts.samples);
        self.totals.raw_bytes += u64::from(entry.raw_len);
        self.totals.chunks += 1;
        self.since_page.push(entry);
    }

    /// Appends full pages, each as a record. `at` is the file offset of the first byte of `out`.
    pub(crate) fn put_pages(&mut self, at: u64, out: &mut Vec<u8>) {
        while self.since_page.len() >= PAGE_ENTRIES {
            let rest = self.since_page.split_off(PAGE_ENTRIES);
            let page = IndexNode {
                previous: self.page,
                totals: self.totals,
                digest: self.digest,
                entries: std::mem::replace(&mut self.since_page, rest),
                ..IndexNode::default()
            };
            let payload = put_ignored_record(out, |out| page.encode(out));
            self.page = at + payload as u64;
            self.newest = self.page;
            self.written = 0;
        }
    }

    /// The node with the entries that are in no node yet, without losses. `node_at` is its file offset.
    pub(crate) fn next_node(&mut self, node_at: u64, head: Option<HeadSums>) -> IndexNode {
        let node = IndexNode {
            previous: self.newest,
            totals: self.totals,
            digest: self.digest,
            entries: self.since_page[self.written..].to_vec(),
            cpus_changed: self.cpus_changed,
            recorded: self.recorded,
            clocks: self.clocks,
            added: self.added,
            head,
            ..IndexNode::default()
        };
        self.written = self.since_page.len();
        self.newest = node_at;
        node
    }
}
