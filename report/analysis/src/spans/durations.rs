//! How long spans lasted, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::{NoTimeParts, TimeParts};
use usdtrec_trace::added::added_argument::AddedValues;
use usdtrec_trace::events::order::place::SamplePlace;

use crate::spans::covers::{CoveredTime, PairCovers, SpanCover};
use crate::spans::nesting::Nesting;
use crate::spans::spent_time::{SpentSums, SpentTime};
use crate::spans::waits::WaitSums;
use crate::stats::distribution::Distribution;
use crate::stats::heat::{Cells, HeatCell, merge};
use crate::stats::keys::key::KeyWords;
use crate::stats::log2::{BucketKind, Log2};
use crate::stats::number::Integer;

/// Maximum number of groups of spans with statistics of their own; each takes some kilobytes.
pub(crate) const MAX_SPAN_GROUPS: usize = 1 << 14;
/// The same if spans are counted by time interval, too; each group takes some tens of kilobytes.
pub(crate) const MAX_HEAT_GROUPS: usize = 1 << 10;

/// Statistics of the durations of spans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// Of what is measured of them: their durations, or a part of their time, ns.
    pub(crate) distribution: Distribution<Integer>,
    /// What they were spent on.
    pub(crate) spent: SpentSums,
    /// What their threads waited for in them and in no span within them; `None` if that is not known.
    pub(crate) waits: Option<Box<WaitSums>>,
    /// Sum, ns.
    pub(crate) sum: u128,
    /// Sum without the time of nested spans, ns.
    pub(crate) own_sum: u128,
    /// The time in which spans were open, each moment once; `None` if it is not known, because these are of several groups.
    pub(crate) covered: Option<CoveredTime>,
    /// Number of spans by time interval of the begin and bucket of the duration, if this was requested.
    pub(crate) heat: Cells,
}

/// A span that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedSpan {
    /// ns.
    pub(crate) duration: u64,
    /// Duration without nested spans, ns.
    pub(crate) own: u64,
    pub(crate) spent: SpentTime,
    /// What is measured of it, ns; `None` if it is not known.
    pub(crate) measured: Option<u64>,
    /// The time interval in which it began, if spans are counted by interval; `None` if it began before all of them.
    pub(crate) interval: Option<u32>,
}

/// One of the slowest spans. They are ordered by duration; of equal ones the earlier is the slower.
#[derive(Clone, Debug)]
pub struct SlowSpan {
    /// ns.
    pub duration: u64,
    /// When it began, ns.
    pub time: Reverse<u64>,
    /// What it was spent on.
    pub parts: Result<TimeParts, NoTimeParts>,
    /// Position of the event that began it.
    pub(crate) begin: Reverse<SamplePlace>,
    /// What that event got besides its own arguments.
    pub(crate) added: Option<Arc<AddedValues>>,
    /// What the event that ended it got.
    pub(crate) end_added: Option<Arc<AddedValues>>,
}

impl SlowSpan {
    /// What they are ordered by.
    const fn rank(&self) -> (u64, Reverse<u64>, Reverse<SamplePlace>) {
        (self.duration, self.time, self.begin)
    }
}

impl PartialEq for SlowSpan {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for SlowSpan {}

impl PartialOrd for SlowSpan {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SlowSpan {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Numbers of matched and unmatched begins and ends of a pair of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans that ended, including those shorter than the least duration.
    pub ended: u64,
    /// Begins with an end, which need not be selected.
    pub ended_begins: u64,
    /// Ends with a begin, which need not be selected.
    pub begun_ends: u64,
    /// Begins without an end.
    pub open: u64,
    /// Begins without an end that ended at the latest when the span around them did, or when the next one began.
    pub unfinished: u64,
    /// Of these, those after which the next one began.
    pub followed: u64,
    /// Whether spans are within each other.
    pub(crate) nesting: Nesting,
    /// How long the longest one lasted, whether or not it is selected, ns; `None` without spans.
    pub(crate) longest: Option<u64>,
    /// Ends without a begin, and without a pause before them.
    pub unmatched: u64,
    /// Of these, ends that came so early that their begins may have been before the recording: no longer after its first hit than the longest
    /// span lasted, whether or not it is selected.
    pub early: u64,
    /// Begins that were open when a pause of the probes began: it is not known when they ended.
    pub paused_begins: u64,
    /// Of these, begins after which the next span of their key began before the pause.
    pub(crate) followed_before_pause: FollowedBeforePause,
    /// Ends without a begin after a pause, in or before which they may have begun.
    pub paused_ends: u64,
    /// Maximum number of spans of one thread or process that were open at once; 0 if spans are matched by something else.
    pub depth: u64,
    /// Hits without a key: its value is missing, or a string beyond those that are stored.
    pub unkeyed: u64,
    /// Whether an end has not taken the newest open begin of its key.
    pub(crate) is_out_of_order: bool,
}

/// Begins before a pause after which the next span of their key began: if spans follow each other, they had ended then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowedBeforePause {
    /// Begins that count as before a pause.
    pub(crate) paused: u64,
    /// Begins that would count as followed.
    pub(crate) followed: u64,
}

impl SpanCounts {
    /// Whether there were any hits of the probes.
    pub const fn is_seen(&self) -> bool {
        let touch_pauses = self.paused_begins + self.paused_ends;
        self.ended + self.open + self.unmatched + self.unkeyed + touch_pauses > 0
    }

    /// Whether no hit is known to have begun a span. Begins of spans that ended are, whether or not they are selected.
    pub const fn has_no_begins(&self) -> bool {
        self.nesting.ended() + self.open + self.paused_begins == 0
    }

    /// Begins that were open at the end of the trace.
    pub const fn going_on(&self) -> u64 {
        self.open.saturating_sub(self.unfinished)
    }

    /// Counts what was followed before a pause as ended, if spans follow each other.
    pub(crate) fn settle_followed(&mut self) {
        let FollowedBeforePause { paused, followed } =
            std::mem::take(&mut self.followed_before_pause);
        self.paused_begins = self.paused_begins.saturating_sub(paused);
        self.open += followed;
        self.unfinished += followed;
        self.followed += followed;
    }

    /// Adds the counts of another thread.
    fn merge(&mut self, other: Self) {
        self.ended += other.ended;
        self.ended_begins += other.ended_begins;
        self.begun_ends += other.begun_ends;
        self.open += other.open;
        self.unfinished += other.unfinished;
        self.followed += other.followed;
        self.nesting.merge(other.nesting);
        self.longest = self.longest.max(other.longest);
        self.unmatched += other.unmatched;
        self.early += other.early;
        self.paused_begins += other.paused_begins;
        self.followed_before_pause.paused += other.followed_before_pause.paused;
        self.followed_before_pause.followed += other.followed_before_pause.followed;
        self.paused_ends += other.paused_ends;
        self.depth = self.depth.max(other.depth);
        self.unkeyed += other.unkeyed;
        self.is_out_of_order |= other.is_out_of_order;
    }
}

/// The spans of one pair of probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairStats {
    pub(crate) all: Durations,
    /// Statistics by group: the words of its keys.
    pub(crate) groups: HashMap<Box<[KeyWords]>, Durations>,
    /// Maximum number of groups.
    most_groups: usize,
    /// Whether there were more groups, some of which are left out.
    pub(crate) overflow: bool,
    /// The slowest spans; the top of the heap is the least slow.
    pub(crate) slowest: BinaryHeap<Reverse<SlowSpan>>,
    pub(crate) counts: SpanCounts,
}

impl Durations {
    /// Counts a span.
    #[inline]
    fn add(&mut self, span: EndedSpan) {
        self.sum += u128::from(span.duration);
        self.own_sum += u128::from(span.own);
        self.spent.add(span.spent);
        let Some(measured) = span.measured else {
            return;
        };
        let measured = Integer(measured.into());
        self.distribution.add(measured);
        if let Some(interval) = span.interval {
            let bucket = measured.index(BucketKind::Time);
            *self.heat.entry(HeatCell { interval, bucket }).or_default() += 1;
        }
    }

    /// Adds the statistics of other spans. What both cover is not known then.
    pub(crate) fn merge(&mut self, other: Self) {
        self.distribution.merge(other.distribution);
        self.spent.merge(&other.spent);
        WaitSums::join(&mut self.waits, other.waits);
        self.sum += other.sum;
        self.own_sum += other.own_sum;
        self.covered = None;
        merge(&mut self.heat, other.heat);
    }
}

impl PairStats {
    /// Without spans, for at most this number of groups.
    pub(crate) fn new(most_groups: usize) -> Self {
        Self {
            most_groups,
            ..Self::default()
        }
    }

    /// Counts a span. Returns whether it is counted in its group, too.
    #[inline]
    pub(crate) fn add(&mut self, span: EndedSpan, group: &[KeyWords]) -> bool {
        self.all.add(span);
        if group.is_empty() {
            return false;
        }
        let durations = self.group(group);
        let is_kept = durations.is_some();
        durations
            .into_iter()
            .for_each(|durations| durations.add(span));
        is_kept
    }

    /// Adds what the thread of a span waited for that is counted.
    pub(crate) fn add_waits(&mut self, waits: Box<WaitSums>, group: &[KeyWords]) {
        if let Some(durations) = self.groups.get_mut(group) {
            durations.waits.get_or_insert_default().merge(&waits);
        }
        WaitSums::join(&mut self.all.waits, Some(waits));
    }

    /// What no thread waited in is known, too.
    pub(crate) fn know_waits(&mut self) {
        for durations in self.groups.values_mut().chain([&mut self.all]) {
            durations.waits.get_or_insert_default();
        }
    }

    /// Sets the time in which spans were open.
    pub(crate) fn cover(&mut self, covers: &PairCovers) {
        self.all.covered = Some(covers.all.time());
        for (group, durations) in &mut self.groups {
            durations.covered = covers.groups.get(group).map(SpanCover::time);
        }
    }

    /// The statistics of a group; `None` for a new group beyond the maximum.
    fn group(&mut self, group: &[KeyWords]) -> Option<&mut Durations> {
        if !self.groups.contains_key(group) {
            if self.groups.len() >= self.most_groups {
                self.overflow = true;
                return None;
            }
            self.groups.insert(group.into(), Durations::default());
        }
        self.groups.get_mut(group)
    }

    /// Keeps a span if it is among the `most` slowest so far.
    #[inline]
    pub(crate) fn keep(&mut self, slow: SlowSpan, most: usize) {
        if self.slowest.len() < most {
            self.slowest.push(Reverse(slow));
        } else if self.slowest.peek().is_some_and(|least| slow > least.0) {
            self.slowest.pop();
            self.slowest.push(Reverse(slow));
        }
    }

    /// Counts the spans that are still buffered. To be called before the statistics are read.
    pub(crate) fn settle(&mut self) {
        for durations in self.groups.values_mut().chain([&mut self.all]) {
            durations.distribution.settle();
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: Self, most: usize) {
        self.settle();
        self.all.merge(other.all);
        self.overflow |= other.overflow;
        for (group, durations) in other.groups {
            if let Some(known) = self.group(&group) {
                known.merge(durations);
            }
        }
        for Reverse(slow) in other.slowest {
            self.keep(slow, most);
        }
        self.counts.merge(other.counts);
    }
}
