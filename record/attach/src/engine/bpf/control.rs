//! Words that the programs share with the recorder. Each part of the recording ([`Part`](super::part::Part)) has such words; of later parts
//! those between the first word and the hits lost to filters are unused.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | not 0 while hits are recorded |
//! | 8 | 8 | time of the last pass of the recorder over the ring, ms of `CLOCK_MONOTONIC`; 0 before the first |
//! | 16 | 8 | not 0 if no process is held: probes are in all processes of the files, or holding was given up |
//! | 24 | 8 | number of processes that were started or executed a program without links of their own |
//! | 32 | 8 | number of those that may have run before they had probes |
//! | 40 | 8 | hits lost because a filter read memory that was not resident |
//! | 48 | 8 | not 0 while processes are held that map files which are not known |
//! | 56 | 8 | number of such mappings: the token of the last |
//! | 64 | 8 | up to which token the probes of the files are attached |
//! | 72 | 8 | number of those mappings whose processes were not held, or not until then |
//! | 80 | 8 | number of groups of hits that programs have begun, or tried to |
//! | 88 | 8 | how often the least or greatest number of a group could not be raised |
//! | 96 | 8 | spans that were too short to be recorded |
//! | 104 | 8 | begins of spans that were not kept, because too many were open |
//! | 112 | 8 | the same, because too many of one thread were |
//! | 120 | 8 | ends of spans without a begin |
//! | 128 | 8 | ends of spans that are equal to an older begin than the one that they take |
//! | 136 | 8 | begins of spans whose threads have no room for how long they wait |
//! | 144 | 8 | waits for whose records there was no room |
//! | 152 | 8 each | hits lost, by sample id |
//! | after them | 16 each | by sample id and string of its site: number of unreadable ones in a row, and the time (ns) until which none is read |
//! | after them | 8 each | by sample id: not 0 while many strings of the site are too long for a short record |
//! | after them | 8 each | by sample id: index of the size of its stacks; in the second byte, of that in a crowded ring; above it the fill level, in 256ths, from which on a ring is crowded |
//! | after them | | hits by sample id, where they are counted and not recorded ([`HitCounts`]) |

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::bpf::sys;
use usdtrec_kernel::trace_clock;

use super::super::outcome::{EngineCounts, SlowSpanCounts};
use super::aggregate::hit_counts::{HitCounts, HitWord};
use super::kernel_objects::MappedWords;
use crate::aggregation::SpanHitCounts;

/// Offset of the word that is not 0 while hits are recorded.
pub(super) const ENABLED: u32 = 0;
/// Offset of the time of the recorder's last pass over the ring.
pub(super) const LOOKED: u32 = 8;
/// Offset of the word that is not 0 while no process is held.
pub(super) const RELEASED: u32 = 16;
/// Offset of the count of processes that began and have no links of their own.
pub(super) const CALLS: u32 = 24;
/// Offset of the count of those that may have run before they had probes.
pub(super) const MISSED: u32 = 32;
/// Offset of the count of hits for which a filter could not be evaluated.
pub(super) const UNJUDGED: u32 = 40;
/// Offset of the word that is not 0 while processes are held that map files which are not known.
pub(super) const HOLDING: u32 = 48;
/// Offset of the count of such mappings.
pub(super) const MAPPINGS: u32 = 56;
/// Offset of the token up to which the probes of the files are attached.
pub(super) const ANSWERED: u32 = 64;
/// Offset of the count of those mappings whose processes were not held, or not until then.
pub(super) const UNHELD: u32 = 72;
/// Offset of the number of groups of hits.
pub(super) const GROUPS: u32 = 80;
/// Offset of the count of extremes that could not be raised.
pub(super) const UNRAISED: u32 = 88;
/// Offset of the count of spans that were too short.
pub(super) const SHORT_SPANS: u32 = 96;
/// Offset of the count of begins for which the map of open spans had no room.
pub(super) const FULL_SPANS: u32 = 104;
/// Offset of the count of begins in too many open spans of the thread.
pub(super) const DEEP_SPANS: u32 = 112;
/// Offset of the count of ends without a begin.
pub(super) const UNMATCHED_ENDS: u32 = 120;
/// Offset of the count of ends that are equal to an older begin than the one that they take.
pub(super) const OLDER_ENDS: u32 = 128;
/// Offset of the count of begins whose threads have no room for their waits.
pub(super) const UNKNOWN_WAITS: u32 = 136;
/// Offset of the count of waits for whose records there was no room.
pub(super) const LOST_WAITS: u32 = 144;
/// Offset of the first count of losses, one word for each sample id.
pub(super) const LOSSES: u32 = 152;

/// The words that only count, with what each is in the trace.
const COUNTS: [(u32, ShortfallKind); 6] = [
    (MISSED, ShortfallKind::UnattachedChildren),
    (UNJUDGED, ShortfallKind::Unjudged),
    (UNHELD, ShortfallKind::UnheldMappings),
    (UNRAISED, ShortfallKind::InexactExtremes),
    (UNKNOWN_WAITS, ShortfallKind::UnknownWaits),
    (LOST_WAITS, ShortfallKind::LostWaits),
];

/// Number of words before the losses.
pub(super) const HEAD: usize = LOSSES as usize / 8;

/// Number of bytes for each string.
pub(super) const STRING: u32 = 16;

/// Offset of the words of the first string of the first sample id.
pub(super) const fn strings_at(ids: u32) -> u32 {
    LOSSES + 8 * ids
}

/// Offset of the word of the first sample id that is not 0 while its strings are long.
pub(super) const fn long_strings_at(ids: u32, strings: u32) -> u32 {
    strings_at(ids) + ids * strings * STRING
}

/// Offset of the word of the first sample id that has the indexes of the sizes of its stacks.
pub(super) const fn stack_sizes_at(ids: u32, strings: u32) -> u32 {
    long_strings_at(ids, strings) + 8 * ids
}

/// Offset of what comes after those.
pub(super) const fn words_end(ids: u32, strings: u32) -> u32 {
    stack_sizes_at(ids, strings) + 8 * ids
}

/// The map of the words, mapped into memory.
#[derive(Debug)]
pub(super) struct Control {
    descriptor: OwnedFd,
    words: MappedWords,
    hit_counts: Option<HitCounts>,
}

impl Control {
    /// Creates the map, for a number of sample ids with a maximum number of strings each.
    pub(super) fn new(ids: u32, strings: u32, hit_counts: Option<HitCounts>) -> io::Result<Self> {
        let bytes = hit_counts.map_or(words_end(ids, strings), HitCounts::end);
        let map = sys::create_array(bytes, 1)?;
        Ok(Self {
            hit_counts,
            ..Self::from_descriptor(map, bytes as usize / 8)?
        })
    }

    /// The first `words` words of a control map.
    pub(super) fn from_descriptor(descriptor: OwnedFd, words: usize) -> io::Result<Self> {
        Ok(Self {
            words: MappedWords::new(descriptor.as_fd(), words)?,
            descriptor,
            hit_counts: None,
        })
    }

    /// Sets whether hits are recorded from now on. Programs that are running have read the word already.
    pub(super) fn set_enabled(&self, enabled: bool) {
        self.store(ENABLED, enabled.into());
    }

    /// Stores the current time as that of the recorder's last pass.
    pub(super) fn set_looked(&self) {
        self.store(LOOKED, now_ms());
    }

    /// Whether that time was stored before.
    pub(super) fn has_looked(&self) -> bool {
        self.load(LOOKED) > 0
    }

    /// What programs have counted of spans that they match.
    pub(super) fn span_counts(&self) -> SlowSpanCounts {
        SlowSpanCounts {
            short: self.load(SHORT_SPANS),
            full: self.load(FULL_SPANS),
            deep: self.load(DEEP_SPANS),
            unmatched: self.load(UNMATCHED_ENDS),
            older: self.load(OLDER_ENDS),
        }
    }

    /// Sets that no process is held: new processes run at once, and held ones continue.
    pub(super) fn set_released(&self, released: bool) {
        self.store(RELEASED, released.into());
    }

    /// Whether no process is held.
    pub(super) fn is_released(&self) -> bool {
        self.word(RELEASED)
            .is_none_or(|word| word.load(Ordering::SeqCst) != 0)
    }

    /// Number of processes that were started without links of their own since the last call; resets it.
    pub(super) fn take_calls(&self) -> u64 {
        self.word(CALLS)
            .map_or(0, |word| word.swap(0, Ordering::SeqCst))
    }

    /// Sets whether processes are held that map files which are not known; held ones continue.
    pub(super) fn set_holding(&self, holding: bool) {
        self.store(HOLDING, holding.into());
    }

    /// Continues the processes of the mappings up to this token.
    pub(super) fn set_answered(&self, token: u64) {
        self.store(ANSWERED, token);
    }

    /// Adds what programs have counted besides hits and losses.
    pub(super) fn add_counts(&self, counts: &mut EngineCounts) {
        for (word, kind) in COUNTS {
            counts.add(kind, self.load(word));
        }
    }

    /// Number of lost hits of the sample id with this index.
    pub(super) fn lost(&self, index: usize) -> u64 {
        self.load(LOSSES + 8 * index as u32)
    }

    /// Number of hits of the sample id with this index that were counted instead of recorded.
    pub(super) fn counted(&self, index: usize) -> u64 {
        let words = self
            .hit_counts
            .iter()
            .flat_map(|counts| counts.words(index));
        words.map(|word| self.load(word)).sum()
    }

    /// What was counted of the begins and ends of the sample id with this index.
    pub(super) fn spans_of(&self, index: usize) -> SpanHitCounts {
        let count = |word| {
            let counts = self.hit_counts.iter();
            let words = counts.flat_map(|counts| counts.word(index, word));
            words.map(|at| self.load(at)).sum()
        };
        SpanHitCounts {
            // An end that is counted meanwhile has a begin.
            ended: count(HitWord::Ended),
            unfinished: count(HitWord::Unfinished),
            begun: count(HitWord::Begun),
            ungrouped: count(HitWord::UngroupedEnd),
            short: count(HitWord::Short),
            unmatched: count(HitWord::Unmatched),
            unkeyed: count(HitWord::Unkeyed),
            deep: count(HitWord::Deep),
            full: count(HitWord::Full),
            older: count(HitWord::Older),
        }
    }

    /// Sets the word at an offset.
    pub(super) fn store(&self, offset: u32, value: u64) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::SeqCst);
        }
    }

    /// The word at an offset; 0 if the map is shorter.
    fn load(&self, offset: u32) -> u64 {
        self.word(offset)
            .map_or(0, |word| word.load(Ordering::SeqCst))
    }

    fn word(&self, offset: u32) -> Option<&AtomicU64> {
        self.words.get(offset as usize / 8)
    }
}

/// Milliseconds of the clock that programs read, never 0.
fn now_ms() -> u64 {
    (trace_clock::now() / 1_000_000).max(1)
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
