//! The rolling footer, which makes the file whole after every flush.
//!
//! perf looks for the feature table where the data end. After each flush a type-65 record, which perf ignores, is
//! appended and one 8-byte write moves the end of the data 8 bytes into it:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | record header: type 65, size |
//! | | | *the data end here* |
//! | 8 | 16 each | feature table |
//! | | | newest node of the [`index`](super::index) |
//!
//! The next flush appends behind the record, which then is one ignored record more. Until its own 8-byte write the file is
//! what it was, whatever stands behind the footer. At the normal end the data end between two records and the table and
//! the last node follow them, without a record around them.

use super::head_sums::HeadSums;
use super::index::{IndexEntry, IndexNode, PAGE_ENTRIES, RunningTotals};
use crate::perf::RecordType;

/// perf 6.1 reads a fixed part of a type-65 record before it ignores it.
const LEAST_RECORD: usize = 80;

/// Appends a type-65 record and returns the offset of its payload in `out`.
pub(crate) fn put_ignored_record(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    out.extend(RecordType::HEADER_EVENT_TYPE.0.to_le_bytes());
    out.extend([0; 4]);
    payload(out);
    let size = (out.len() - start).next_multiple_of(8).max(LEAST_RECORD);
    out.resize(start + size, 0);
    out[start + 6..start + 8].copy_from_slice(&(size as u16).to_le_bytes());
    start + 8
}

/// The newest end of the index, as the writer keeps it.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexTail {
    /// Entries since the last page.
    since_page: Vec<IndexEntry>,
    /// How many of those stand in nodes already.
    written: usize,
    /// File offset of the newest page.
    page: u64,
    /// File offset of the newest node.
    newest: u64,
    /// File offset of the newest digest; 0 if there is none.
    pub(crate) digest: u64,
    /// Totals.
    pub(crate) totals: RunningTotals,
    /// Whether CPUs went off line or came on line while perf events recorded.
    pub(crate) cpus_changed: bool,
    /// When recording began and up to when it has come, ns.
    pub(crate) recorded: Option<(u64, u64)>,
}

impl IndexTail {
    /// Adds an entry.
    pub(crate) fn add(&mut self, entry: IndexEntry) {
        self.totals.samples += u64::from(entry.tally.samples);
        self.totals.raw_bytes += u64::from(entry.raw_len);
        self.totals.chunks += 1;
        self.since_page.push(entry);
    }

    /// Appends full pages, as records of their own. `at` is the file offset of `out`'s first byte.
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

    /// The node of the entries not yet written, without losses. `node_at` is its file offset.
    pub(crate) fn next_node(&mut self, node_at: u64, head: Option<HeadSums>) -> IndexNode {
        let node = IndexNode {
            previous: self.newest,
            totals: self.totals,
            digest: self.digest,
            entries: self.since_page[self.written..].to_vec(),
            cpus_changed: self.cpus_changed,
            recorded: self.recorded,
            head,
            ..IndexNode::default()
        };
        self.written = self.since_page.len();
        self.newest = node_at;
        node
    }
}
