//! Blocks that are read, sorted, and not yet wholly shown.

use std::ops::Range;

use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::{BlockReader, Damage};

use crate::events::selection::SampleFilter;
use crate::session::TraceSession;
use crate::session::head::TimedTarget;
use crate::session::resolver::Resolver;
use crate::session::scan::SampleBlock;

/// A sample's place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SampleKey {
    /// ns.
    pub(crate) time: u64,
    /// Offset of its record in the block's records.
    pub(crate) offset: u32,
}

/// A block in memory, the samples requested sorted by time.
#[derive(Debug, Default)]
pub(crate) struct LoadedBlock {
    /// Index of the block in the file's order.
    pub(crate) block: usize,
    /// Its records.
    pub(crate) bytes: Vec<u8>,
    /// Its samples that are selected, in the order of time, and of the file where times are equal.
    pub(crate) keys: Vec<SampleKey>,
    /// Number of samples that were output.
    pub(crate) shown: usize,
    /// Samples in it that belong to no event of the trace.
    pub(crate) unknown: u64,
}

/// A place in the order of samples: a time, and a block that decides where times are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) time: u64,
    pub(crate) block: usize,
}

impl LoadedBlock {
    /// Empties it for another block, but keeps its buffers.
    pub(crate) fn reuse(&mut self, block: usize) {
        self.keys.clear();
        *self = Self {
            block,
            bytes: std::mem::take(&mut self.bytes),
            keys: std::mem::take(&mut self.keys),
            ..Self::default()
        };
    }

    /// Bytes of memory that it needs: most of a small block are not its records'.
    pub(crate) const fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.keys.len() * size_of::<SampleKey>()
    }

    /// Number of samples before a mark; all, without a mark.
    pub(crate) fn before(&self, mark: Option<Mark>) -> usize {
        let of = |key: &SampleKey| Mark {
            time: key.time,
            block: self.block,
        };
        mark.map_or(self.keys.len(), |mark| {
            self.keys.partition_point(|key| of(key) < mark)
        })
    }
}

/// Size of the header of a record, bytes.
pub(crate) const RECORD_HEADER: usize = 8;

/// The body of a record among those of a block.
#[inline]
pub(crate) fn record_at(bytes: &[u8], offset: u32) -> Option<&[u8]> {
    let record = bytes.get(offset as usize..)?;
    let (header, _) = record.split_first_chunk::<RECORD_HEADER>()?;
    let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
    record.get(RECORD_HEADER..size)
}

/// A sample's place among several blocks: the order is that of time, then of blocks, then of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SampleEntry {
    pub(crate) time: u64,
    /// Index among the blocks in memory, which are in the file's order.
    pub(crate) slot: u32,
    pub(crate) offset: u32,
}

/// The samples of one block that fall into a window.
#[derive(Clone, Debug)]
pub(crate) struct WindowPart {
    /// Index among the blocks in memory.
    pub(crate) slot: usize,
    pub(crate) keys: Range<usize>,
}

/// Number of samples in a window.
pub(crate) fn samples(window: &[WindowPart]) -> usize {
    window.iter().map(|part| part.keys.len()).sum()
}

/// Divides the samples up to `ends` of each block into windows, one after the other in time, of about
/// `size` samples. Samples of one time are all in one window. Only blocks with samples in a window are listed: there may
/// be very many small ones.
pub(crate) fn windows(blocks: &[LoadedBlock], ends: &[usize], size: usize) -> Vec<Vec<WindowPart>> {
    let due = || {
        blocks
            .iter()
            .zip(ends)
            .map(|(block, &end)| (block, block.shown..end))
    };
    let total: usize = due().map(|(_, range)| range.len()).sum();
    let count = total.div_ceil(size.max(1)).max(1);
    // So many samples of each block between two that are looked at, that dozens fall into each window.
    let step = (size / 32).max(1);
    let mut times: Vec<u64> = due()
        .flat_map(|(block, range)| block.keys[range].iter().step_by(step).map(|key| key.time))
        .collect();
    times.sort_unstable();
    let mut bounds: Vec<u64> = (1..count)
        .filter_map(|window| times.get(window * times.len() / count).copied())
        .collect();
    bounds.dedup();
    let mut windows = vec![Vec::new(); bounds.len() + 1];
    for (slot, (block, range)) in due().enumerate() {
        let mut from = range.start;
        while let Some((first, _)) = block.keys[from..range.end].split_first() {
            let window = bounds.partition_point(|bound| *bound <= first.time);
            let rest = &block.keys[from..range.end];
            let count = bounds.get(window).map_or(rest.len(), |bound| {
                rest.partition_point(|key| key.time < *bound)
            });
            let keys = from..from + count;
            from = keys.end;
            windows[window].push(WindowPart { slot, keys });
        }
    }
    windows.retain(|window| !window.is_empty());
    windows
}

/// The samples of a window in order.
pub(crate) fn merged(blocks: &[LoadedBlock], window: &[WindowPart]) -> Vec<SampleEntry> {
    let mut entries = Vec::with_capacity(samples(window));
    for WindowPart { slot, keys } in window {
        entries.extend(
            blocks[*slot].keys[keys.clone()]
                .iter()
                .map(|key| SampleEntry {
                    time: key.time,
                    slot: *slot as u32,
                    offset: key.offset,
                }),
        );
    }
    if window.len() > 1 {
        // Finds the sorted runs of the parts and merges them.
        entries.sort_by_key(|entry| entry.time);
    }
    entries
}

/// Reads a block into `loaded`, which is empty.
pub(crate) fn load(
    session: &TraceSession,
    filter: &SampleFilter,
    block: &SampleBlock,
    reader: &mut BlockReader,
    loaded: &mut LoadedBlock,
) -> Result<(), Damage> {
    let mut sorted = true;
    let mut last = 0;
    let mut resolver = None;
    for record in Records::new(reader.read(session.trace(), &block.block)?) {
        if record.kind != RecordType::SAMPLE {
            continue;
        }
        let Some(TimedTarget { target, time }) = session.time_of(record.body) else {
            loaded.unknown += 1;
            continue;
        };
        if !filter.early(target, time) {
            continue;
        }
        if !filter.is_simple() {
            let hit = session.sample(record.body);
            let resolver = resolver.get_or_insert_with(|| Resolver::new(session));
            if !hit.is_some_and(|hit| filter.late(hit.target, &hit.sample, resolver)) {
                continue;
            }
        }
        sorted &= time >= last;
        last = time;
        loaded.keys.push(SampleKey {
            time,
            offset: record.offset as u32,
        });
    }
    if !sorted {
        // Stable, and finds the runs of the rings that were drained one after the other.
        loaded.keys.sort_by_key(|key| key.time);
    }
    reader.swap_records(&mut loaded.bytes);
    Ok(())
}
