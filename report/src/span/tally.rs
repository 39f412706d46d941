//! How long spans lasted, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::HashMap;

use crate::report::distribution::Distribution;
use crate::report::groups::Words;
use crate::report::heatmap::{Cells, merge};
use crate::report::log2::{Kind, Log2};
use crate::report::number::Integer;

/// Groups of spans that are kept apart; each takes some kilobytes.
pub(crate) const MOST_SPAN_GROUPS: usize = 1 << 14;

/// How long some spans lasted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// ns.
    pub(crate) distribution: Distribution<Integer>,
    /// Sum, ns.
    pub(crate) total: u128,
}

/// One of the slowest spans. They are ordered by how long they lasted, the earlier of equals being the slower.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slow {
    /// ns.
    pub(crate) duration: u64,
    /// When it began, ns.
    pub(crate) time: Reverse<u64>,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// Name of the thread.
    pub(crate) comm: String,
    /// Event that began it.
    pub(crate) event: usize,
    /// Its arguments, as `script` shows them.
    pub(crate) arguments: Vec<Shown>,
    /// File offset of the block that its begin is in, if it is still known.
    pub(crate) offset: u64,
}

/// An argument as `script` shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) json: String,
}

/// The spans of one pair of probes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairTally {
    pub(crate) all: Durations,
    /// By the words of the keys that they are grouped by.
    pub(crate) groups: HashMap<Box<[Words]>, Durations>,
    /// Those of groups beyond [`MOST_SPAN_GROUPS`].
    pub(crate) others: Durations,
    /// The slowest ones, the least slow on top.
    pub(crate) slowest: BinaryHeap<Reverse<Slow>>,
    /// Where they are asked for, spans by the interval in which they began and the bucket of how long they lasted.
    pub(crate) heat: Cells,
    /// Spans that began and did not end.
    pub(crate) open: u64,
    /// Ends without a beginning.
    pub(crate) unmatched: u64,
    /// How many of one thread or process were open at once at most; 0 if spans are matched by something else.
    pub(crate) depth: u64,
    /// Hits whose key is missing, or among too many texts to be told apart.
    pub(crate) unkeyed: u64,
}

impl Durations {
    #[inline]
    fn add(&mut self, duration: u64) {
        self.distribution.add(Integer(duration.into()));
        self.total += u128::from(duration);
    }

    fn merge(&mut self, other: Self) {
        self.distribution.merge(other.distribution);
        self.total += other.total;
    }

    /// How many.
    pub(crate) const fn count(&self) -> u64 {
        self.distribution.count()
    }
}

impl PairTally {
    /// Counts a span.
    #[inline]
    pub(super) fn add(&mut self, duration: u64, group: &[Words]) {
        self.all.add(duration);
        if group.is_empty() {
            return;
        }
        let full = self.groups.len() >= MOST_SPAN_GROUPS;
        match self.groups.get_mut(group) {
            Some(durations) => durations.add(duration),
            None if full => self.others.add(duration),
            None => {
                let mut durations = Durations::default();
                durations.add(duration);
                self.groups.insert(group.into(), durations);
            }
        }
    }

    /// Counts a span in its interval.
    pub(super) fn add_heat(&mut self, interval: usize, duration: u64) {
        let bucket = Integer(duration.into()).index(Kind::Time);
        *self.heat.entry((interval as u32, bucket)).or_default() += 1;
    }

    /// Whether a span that began then and lasted so long is among the `most` slowest so far.
    #[inline]
    pub(super) fn is_slow(&self, (begin, duration): (u64, u64), most: usize) -> bool {
        let least = self.slowest.peek().map(|least| &least.0);
        let slower = |least: &Slow| (duration, Reverse(begin)) > (least.duration, least.time);
        self.slowest.len() < most || least.is_some_and(slower)
    }

    /// Keeps it among them.
    pub(super) fn keep(&mut self, slow: Slow, most: usize) {
        self.slowest.push(Reverse(slow));
        if self.slowest.len() > most {
            self.slowest.pop();
        }
    }

    /// Counts what is not yet counted. To be called before anything is asked.
    pub(super) fn settle(&mut self) {
        let groups = self.groups.values_mut();
        for durations in groups.chain([&mut self.all, &mut self.others]) {
            durations.distribution.settle();
        }
    }

    /// Adds those of another thread.
    pub(super) fn merge(&mut self, other: Self, most: usize) {
        self.settle();
        self.all.merge(other.all);
        self.others.merge(other.others);
        for (group, durations) in other.groups {
            let full = self.groups.len() >= MOST_SPAN_GROUPS;
            match self.groups.get_mut(&group) {
                Some(known) => known.merge(durations),
                None if full => self.others.merge(durations),
                None => {
                    self.groups.insert(group, durations);
                }
            }
        }
        for Reverse(slow) in other.slowest {
            self.keep(slow, most);
        }
        merge(&mut self.heat, other.heat);
        self.open += other.open;
        self.unmatched += other.unmatched;
        self.depth = self.depth.max(other.depth);
        self.unkeyed += other.unkeyed;
    }
}
