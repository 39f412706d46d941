//! What a process has mapped where.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use usdtrec_format::perf::MmapFile;

use crate::limits::{MAX_MAPPINGS_OF_PROCESS, MAX_REPLACED_MAPPINGS};

/// A file that processes map, or memory of this name.
#[derive(Debug)]
pub struct TableFile {
    /// No other file of the table has this number, nor will.
    pub number: u64,
    /// As in the records.
    pub path: Box<[u8]>,
    /// As in the records.
    pub identity: MmapFile,
}

impl PartialEq for TableFile {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity && self.path == other.path
    }
}

impl Eq for TableFile {}

impl Hash for TableFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
        self.identity.hash(state);
    }
}

/// A mapping of a process.
#[derive(Clone, Debug)]
pub struct ProcessMapping {
    /// Addresses.
    pub range: Range<u64>,
    /// File offset of the first address.
    pub offset: u64,
    /// What is mapped.
    pub file: Arc<TableFile>,
    /// `PROT_*`.
    pub(super) protection: u32,
    /// `MAP_*`.
    pub(super) flags: u32,
    /// Whether it has code, as far as its record says.
    pub is_executable: bool,
    /// When it was mapped, by this process or the one that it is a copy of, ns; 0 if it was before the recording.
    pub since: u64,
}

/// What a process has mapped, and had shortly before.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressSpace {
    /// By the first address. Mappings do not overlap.
    now: Arc<BTreeMap<u64, ProcessMapping>>,
    /// The last ones at the end.
    replaced: Vec<ReplacedMapping>,
}

#[derive(Clone, Debug)]
struct ReplacedMapping {
    mapping: ProcessMapping,
    /// When it was replaced, ns.
    until: u64,
}

impl AddressSpace {
    /// Number of mappings.
    pub(super) fn len(&self) -> usize {
        self.now.len()
    }

    /// The mappings, by their addresses.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &ProcessMapping> {
        self.now.values()
    }

    /// The address space of a child. It is shared until one of the two changes.
    pub(super) fn inherited(&self) -> Self {
        Self {
            now: Arc::clone(&self.now),
            replaced: Vec::new(),
        }
    }

    /// The mapping at an address at a time.
    pub(super) fn find(&self, address: u64, time: u64) -> Option<&ProcessMapping> {
        let has =
            |mapping: &ProcessMapping| mapping.range.contains(&address) && mapping.since <= time;
        let now = self.now.range(..=address).next_back();
        let now = now.map(|(_, mapping)| mapping);
        now.filter(|mapping| has(mapping)).or_else(|| {
            let mut replaced = self.replaced.iter().rev();
            let found = replaced.find(|replaced| time < replaced.until && has(&replaced.mapping));
            found.map(|replaced| &replaced.mapping)
        })
    }

    /// Takes what a new mapping covers from the others, as the kernel does, and adds it; `None` if it has no room. Returns whether it covers something.
    pub(super) fn insert(
        &mut self,
        range: &Range<u64>,
        mapping: Option<ProcessMapping>,
        time: u64,
    ) -> bool {
        let now = Arc::make_mut(&mut self.now);
        let before = now.range(..range.start).next_back();
        let before = before.filter(|(_, known)| known.range.end > range.start);
        let covered = before.into_iter().chain(now.range(range.clone()));
        let covered: Vec<u64> = covered.map(|(start, _)| *start).collect();
        for start in &covered {
            let Some(known) = now.remove(start) else {
                continue;
            };
            if range.end < known.range.end {
                let tail = ProcessMapping {
                    offset: known.offset.wrapping_add(range.end - start),
                    range: range.end..known.range.end,
                    ..known.clone()
                };
                now.insert(range.end, tail);
            }
            if *start < range.start {
                let head = ProcessMapping {
                    range: *start..range.start,
                    ..known.clone()
                };
                now.insert(*start, head);
            }
            keep(&mut self.replaced, known, time);
        }
        if let Some(mapping) = mapping.filter(|_| now.len() < MAX_MAPPINGS_OF_PROCESS) {
            now.insert(range.start, mapping);
        }
        !covered.is_empty()
    }

    /// Another program begins.
    pub(super) fn clear(&mut self, time: u64) {
        let before = std::mem::take(&mut self.now);
        for mapping in before.values() {
            keep(&mut self.replaced, mapping.clone(), time);
        }
    }

    /// Forgets what was replaced before a time.
    pub(super) fn forget_before(&mut self, time: u64) {
        self.replaced.retain(|replaced| replaced.until >= time);
    }

    /// Whether something that was replaced is known.
    pub(super) const fn has_replaced(&self) -> bool {
        !self.replaced.is_empty()
    }
}

/// Keeps what was replaced at a time.
fn keep(replaced: &mut Vec<ReplacedMapping>, mapping: ProcessMapping, until: u64) {
    if replaced.len() >= MAX_REPLACED_MAPPINGS {
        replaced.drain(..MAX_REPLACED_MAPPINGS / 2);
    }
    replaced.push(ReplacedMapping { mapping, until });
}
