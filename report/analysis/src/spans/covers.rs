//! The time in which at least one span of a group was open, and in which one was open and none within it.
//!
//! Windows find what their spans cover; that is put together one window after the other, because spans of several threads, or of several keys of
//! one thread, may be open at once.
//!
//! So Self and Total count each moment once, whatever the keys and threads: Total is the time in which at least one
//! span of the group was open, Self that in which one was open and none within it. Where nothing can begin or end any
//! more, parts of the time become one, so memory is bounded by what is open. Sums, means and percentiles are of single
//! spans.

use foldhash::HashMap;

use crate::spans::children::OwnTime;
use crate::stats::coverage::{Coverage, Interval};
use crate::stats::keys::key::KeyWords;

/// Parts of the time, of all groups together, from which on those are joined that need not be kept apart.
const MAX_PARTS: usize = 1 << 16;

/// When the spans of a window were.
#[derive(Debug, Default)]
pub(crate) struct WindowCovers {
    pairs: Vec<WindowPair>,
}

#[derive(Debug, Default)]
struct WindowPair {
    all: SpanCover,
    groups: HashMap<Box<[KeyWords]>, SpanCover>,
}

impl WindowCovers {
    /// Adds a span, of a group unless that is empty. Its own time is given if it is not all of its time.
    pub(crate) fn add(
        &mut self,
        pair: usize,
        group: &[KeyWords],
        span: Interval,
        own: Option<&OwnTime>,
    ) {
        if self.pairs.len() <= pair {
            self.pairs.resize_with(pair + 1, WindowPair::default);
        }
        let Some(of_pair) = self.pairs.get_mut(pair) else {
            return;
        };
        of_pair.all.add(span, own);
        if group.is_empty() {
            return;
        }
        match of_pair.groups.get_mut(group) {
            Some(parts) => parts.add(span, own),
            None => of_pair
                .groups
                .entry(group.into())
                .or_default()
                .add(span, own),
        }
    }
}

/// The time that the spans of a group cover.
#[derive(Debug, Default)]
pub(crate) struct SpanCover {
    whole: Coverage,
    /// That in which one was open and none within it; `None` if it is the same.
    own: Option<Coverage>,
    /// Own time of which it is not known when it was, ns.
    before: u64,
}

/// Time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoveredTime {
    /// In which at least one span was open.
    pub total: u64,
    /// In which one was open, and none within it.
    pub own: u64,
}

impl SpanCover {
    fn add(&mut self, span: Interval, own: Option<&OwnTime>) {
        if let Some(own) = own {
            let known = self.own.get_or_insert_with(|| self.whole.clone());
            own.parts.iter().for_each(|part| known.add(*part));
            self.before = self.before.saturating_add(own.before);
        } else if let Some(known) = &mut self.own {
            known.add(span);
        }
        self.whole.add(span);
    }

    fn add_all(&mut self, other: &Self) {
        if let Some(own) = &other.own {
            let known = self.own.get_or_insert_with(|| self.whole.clone());
            known.add_all(own);
            self.before = self.before.saturating_add(other.before);
        } else if let Some(known) = &mut self.own {
            known.add_all(&other.whole);
        }
        self.whole.add_all(&other.whole);
    }

    fn parts(&self) -> usize {
        self.whole.parts() + self.own.as_ref().map_or(0, Coverage::parts)
    }

    fn join(&mut self, times: &[u64]) {
        self.whole.join(times);
        if let Some(own) = &mut self.own {
            own.join(times);
        }
    }

    /// The covered time.
    pub(crate) fn time(&self) -> CoveredTime {
        let total = self.whole.time();
        let own = self.own.as_ref().map_or(total, Coverage::time);
        CoveredTime {
            total,
            own: own.saturating_add(self.before).min(total),
        }
    }
}

/// The time that the spans of each pair cover.
#[derive(Debug)]
pub(crate) struct Covers {
    pub(crate) pairs: Vec<PairCovers>,
    /// Parts of the time, of all together.
    parts: usize,
    /// Number of parts at which they are joined next.
    most: usize,
}

/// The time that the spans of a pair cover.
#[derive(Debug, Default)]
pub(crate) struct PairCovers {
    pub(crate) all: SpanCover,
    pub(crate) groups: HashMap<Box<[KeyWords]>, SpanCover>,
}

impl Covers {
    /// Of so many pairs.
    pub(crate) fn new(pairs: usize) -> Self {
        let mut all = Vec::new();
        all.resize_with(pairs, PairCovers::default);
        Self {
            pairs: all,
            parts: 0,
            most: MAX_PARTS,
        }
    }

    /// Adds the spans of the next window.
    pub(crate) fn take(&mut self, window: WindowCovers) {
        let mut added = 0;
        let mut add = |cover: &mut SpanCover, other: &SpanCover| {
            let before = cover.parts();
            cover.add_all(other);
            added += cover.parts();
            added -= before.min(added);
        };
        for (known, of_window) in self.pairs.iter_mut().zip(window.pairs) {
            add(&mut known.all, &of_window.all);
            for (group, parts) in of_window.groups {
                add(known.groups.entry(group).or_default(), &parts);
            }
        }
        self.parts += added;
    }

    /// Whether parts should be joined.
    pub(crate) const fn are_many(&self) -> bool {
        self.parts > self.most
    }

    /// Joins parts, given for each pair the times in the past at which spans may still be found to have begun or ended.
    pub(crate) fn join(&mut self, times: Vec<Vec<u64>>) {
        self.parts = 0;
        for (pair, mut times) in self.pairs.iter_mut().zip(times) {
            times.sort_unstable();
            times.dedup();
            for cover in std::iter::once(&mut pair.all).chain(pair.groups.values_mut()) {
                cover.join(&times);
                self.parts += cover.parts();
            }
        }
        self.most = MAX_PARTS.max(2 * self.parts);
    }
}
