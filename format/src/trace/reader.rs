//! An open trace.

use super::block::Block;
use super::damage::Damage;
use super::digest::Digest;
use super::group_counts::GroupReads;
use super::source::Source;
use super::{Loss, TraceInfo};

/// An open trace: its head read, its blocks known. What it says of the file does not change when a live recorder appends.
#[derive(Debug)]
pub struct Trace {
    pub(crate) source: Source,
    pub(crate) info: TraceInfo,
    pub(crate) blocks: Vec<Block>,
    /// Whether any of them is a piece of a stream.
    pub(crate) serial: bool,
    pub(crate) digests: Vec<Digest>,
    pub(crate) losses: Option<Vec<Loss>>,
    pub(crate) counted: Option<Vec<Loss>>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) uncommitted: Option<Damage>,
    pub(crate) finished: bool,
    pub(crate) cpus_changed: bool,
    pub(crate) recorded: Option<(u64, u64)>,
    pub(crate) sample_time: Option<(u64, u64)>,
    /// Where samples hold counts.
    pub(crate) group_reads: Option<GroupReads>,
}

impl Trace {
    /// A head without blocks.
    pub(crate) fn of_head(info: TraceInfo, damage: Vec<Damage>) -> Self {
        Self {
            source: Source::none(),
            info,
            blocks: Vec::new(),
            serial: false,
            digests: Vec::new(),
            losses: None,
            counted: None,
            damage,
            uncommitted: None,
            finished: true,
            cpus_changed: false,
            recorded: None,
            sample_time: None,
            group_reads: None,
        }
    }

    /// Its head.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Its blocks in file order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What repeats its metadata blocks, in file order; there may be none.
    #[must_use]
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Whether its blocks must be read in order by one reader, as with what `perf record -z` writes
    /// ([`BlockKind::Stream`](super::BlockKind::Stream)).
    #[must_use]
    pub const fn is_serial(&self) -> bool {
        self.serial
    }

    /// Exact losses, where the recorder lived to write them; `None` if it did not.
    #[must_use]
    pub fn losses(&self) -> Option<&[Loss]> {
        self.losses.as_deref()
    }

    /// What each event had lost when a recorder that did not end counted last, which it does about once a second; without sample
    /// ids, and only events that lost something. `None` if it had not counted, or ended: then there are [`losses`](Self::losses).
    #[must_use]
    pub fn losses_so_far(&self) -> Option<&[Loss]> {
        self.counted.as_deref()
    }

    /// Whether the recorder ended in its own time. `false` if it was killed or still runs.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether CPUs went off line or came on line while perf events recorded: hits there are missing and not counted as lost.
    #[must_use]
    pub const fn cpus_changed(&self) -> bool {
        self.cpus_changed
    }

    /// When recording began and up to when it had come (when it ended, or when the last flush before a kill was), ns of the
    /// trace's clock. `None` if the file does not say, as that of stock perf, or a stream.
    #[must_use]
    pub const fn recorded(&self) -> Option<(u64, u64)> {
        self.recorded
    }

    /// First and last time of a sample, ns: from the blocks where all know it, else what the file's head says.
    #[must_use]
    pub fn time(&self) -> Option<(u64, u64)> {
        let mut whole: Option<(u64, u64)> = None;
        for block in self.blocks.iter().filter(|block| block.samples != Some(0)) {
            let Some(time) = block.time else {
                return self.sample_time;
            };
            let all = whole.unwrap_or(time);
            whole = Some((all.0.min(time.0), all.1.max(time.1)));
        }
        whole.or(self.sample_time)
    }

    /// What was found wrong while opening.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// What stands behind the last flush, if anything: one that was not finished when the recorder was killed, or that is
    /// being written. It is no damage: the file promises what was flushed, and has it.
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
