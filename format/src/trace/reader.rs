//! An open trace.

use std::sync::Arc;

use super::block::Block;
use super::clock_readings::ClockReading;
use super::damage::Damage;
use super::digest::Digest;
use super::time_range::TimeRange;
use super::trace_files::TraceFiles;
use super::trace_part::TracePart;
use super::{Loss, TraceInfo};
use crate::code_names::CodeNames;
use crate::perf::feature::Feature;
use crate::perf::header::Section;

/// An open trace: the contents of its head, and a list of its blocks. It does not change when a recorder appends to the file.
#[derive(Debug, Default)]
pub struct Trace {
    pub(crate) source: TraceFiles,
    /// Files of one recording share it.
    pub(crate) info: Arc<TraceInfo>,
    pub(crate) blocks: Vec<Block>,
    /// Whether any block is a piece of a compressed stream.
    pub(crate) serial: bool,
    pub(crate) digests: Vec<Digest>,
    pub(crate) losses: Option<Vec<Loss>>,
    pub(crate) counted: Option<Vec<Loss>>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) uncommitted: Option<Damage>,
    pub(crate) finished: bool,
    pub(crate) cpus_changed: bool,
    pub(crate) recorded: Option<TimeRange>,
    pub(crate) clocks: Vec<ClockReading>,
    pub(crate) sample_time: Option<TimeRange>,
    /// File offset after the last node of the index, in a file whose recorder has ended.
    pub(crate) index_end: Option<u64>,
    pub(crate) code_names: Option<CodeNames>,
    /// The feature sections of a file.
    pub(crate) sections: Vec<(Feature, Section)>,
    /// The files that it is made of; none if it is a single one.
    pub(crate) parts: Vec<TracePart>,
}

impl Trace {
    /// A trace that consists of a head without blocks.
    pub(crate) fn of_head(info: TraceInfo, damage: Vec<Damage>) -> Self {
        Self {
            info: Arc::new(info),
            damage,
            finished: true,
            ..Self::default()
        }
    }

    /// The head of the trace.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Replaces the head by one with events that were added ([`PipeReader::take_added`](super::PipeReader::take_added)).
    pub fn set_info(&mut self, info: TraceInfo) {
        self.info = Arc::new(info);
    }

    /// The blocks in file order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The digests, which repeat metadata blocks, in file order. A trace may have none.
    #[must_use]
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Whether the blocks should be read in order by one reader, as in traces of `perf record -z`
    /// ([`BlockKind::Stream`](super::BlockKind::Stream)).
    #[must_use]
    pub const fn is_serial(&self) -> bool {
        self.serial
    }

    /// Exact losses; `None` if the recorder was killed before it wrote them.
    #[must_use]
    pub fn losses(&self) -> Option<&[Loss]> {
        self.losses.as_deref()
    }

    /// Losses of each event at the last count, about once per second, of a recorder that has not ended; without sample ids and without
    /// events that lost nothing. `None` if it had not counted yet, or has ended and wrote [`losses`](Self::losses).
    #[must_use]
    pub fn losses_so_far(&self) -> Option<&[Loss]> {
        self.counted.as_deref()
    }

    /// Whether the recorder ended normally. `false` if it was killed or is still running.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether CPUs went off line or came on line while recording with perf events. Hits there are missing and not counted as lost.
    #[must_use]
    pub const fn cpus_changed(&self) -> bool {
        self.cpus_changed
    }

    /// Time at which recording began, and time up to which events are in the file (the end of the recording, or the last flush before a
    /// kill), ns of the trace's clock. `None` in traces of stock perf and of pipes.
    #[must_use]
    pub const fn recorded(&self) -> Option<TimeRange> {
        self.recorded
    }

    /// Readings of the trace's clock and the wall clock, in the order of time. Traces of stock perf and of usdtrec 0.1 have none; they have
    /// the one of [`TraceInfo::clock`], if any.
    #[must_use]
    pub fn clock_readings(&self) -> &[ClockReading] {
        &self.clocks
    }

    /// Earliest and latest time of a sample, ns: from the blocks if all of them have times, else from the head.
    #[must_use]
    pub fn time(&self) -> Option<TimeRange> {
        let mut whole: Option<TimeRange> = None;
        for block in self.blocks.iter().filter(|block| block.samples != Some(0)) {
            let Some(time) = block.time else {
                return self.sample_time;
            };
            whole = Some(whole.map_or(time, |whole| whole.joined(time)));
        }
        whole.or(self.sample_time)
    }

    /// The functions in its stacks, if the recorder found them.
    #[must_use]
    pub const fn code_names(&self) -> Option<&CodeNames> {
        self.code_names.as_ref()
    }

    /// Damage found while opening.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The unfinished flush at the end of the file, if there is one: of a recorder that was killed, or that is still writing. Everything
    /// flushed before it is in the trace.
    #[must_use]
    pub fn uncommitted(&self) -> Option<&Damage> {
        self.uncommitted.as_ref()
    }

    /// File length, bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.source.len()
    }
}
