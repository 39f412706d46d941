//! Counting samples by groups, in bounded memory.

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_format::perf::Sample;

use super::dictionary::Dictionary;
use super::key::{Key, Words};
use super::near::Near;
use super::stats::{MOST_STATS, StatFacts, Stats};
use crate::report::summary::Rows;
use crate::session::{Resolver, Target};

/// Groups that are counted one by one; samples of others are counted together.
pub(crate) const MOST_GROUPS: usize = 1 << 18;

/// Samples of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Samples.
    pub(crate) samples: u64,
    /// Sum of their periods, by which perf weighs them.
    pub(crate) weight: u64,
}

/// Groups of samples. One a thread, merged at the end.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Of each group, its place among the counts.
    places: HashMap<Box<[Words]>, usize>,
    counts: Vec<Count>,
    near: Near,
    /// Numbers of each group, where they are asked for.
    stats: HashMap<Box<[Words]>, Stats>,
    /// Samples of groups beyond the bound, by row.
    others: HashMap<usize, Count>,
    /// The key of the sample at hand, its buffer used again: the row, then the words of each key.
    key: Vec<Words>,
}

impl Count {
    /// Adds another.
    pub(crate) const fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight = self.weight.saturating_add(other.weight);
    }
}

impl Groups {
    /// Counts a sample. Groups of different rows are different groups if `by_row`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        by_row: bool,
        keys: &[Key],
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        (target, sample): (Target, &Sample<'_>),
        dictionary: &Dictionary,
    ) {
        let Some(&Some(row)) = rows.of_event.get(target.event as usize) else {
            return;
        };
        let row = if by_row { row } else { 0 };
        self.key.clear();
        self.key.push((row as u64, 0));
        for key in keys {
            self.key
                .push(key.words(rows, resolver, target, sample, dictionary));
        }
        let count = Count {
            samples: 1,
            weight: resolver.session().weight(target, sample),
        };
        let place = match self.near.find(&self.key) {
            Some(place) => Some(place),
            None => self.find(),
        };
        match place.and_then(|place| self.counts.get_mut(place)) {
            Some(known) => known.add(count),
            None => self.others.entry(row).or_default().add(count),
        }
    }

    /// The place of the group of the sample at hand; `None` if it is one too many.
    fn find(&mut self) -> Option<usize> {
        let place = match self.places.get(&*self.key) {
            Some(&place) => place,
            None => self.begin(self.key.as_slice().into())?,
        };
        self.near.note(&self.key, place);
        Some(place)
    }

    /// Begins a group, if there is room.
    fn begin(&mut self, key: Box<[Words]>) -> Option<usize> {
        let place = self.counts.len();
        if place >= MOST_GROUPS {
            return None;
        }
        self.places.insert(key, place);
        self.counts.push(Count::default());
        Some(place)
    }

    /// Adds a value of the sample that was counted last.
    pub(crate) fn add_value(&mut self, value: &Value) {
        let full = self.stats.len() >= MOST_STATS;
        match self.stats.get_mut(&*self.key) {
            Some(stats) => stats.add(value),
            None if full => {}
            None => {
                let mut stats = Stats::default();
                stats.add(value);
                self.stats.insert(self.key.as_slice().into(), stats);
            }
        }
    }

    /// What is told of the numbers of a group.
    pub(crate) fn stats(&self, row: usize, words: &[Words]) -> StatFacts {
        let key: Vec<Words> = std::iter::once((row as u64, 0))
            .chain(words.iter().copied())
            .collect();
        let stats = self.stats.get(key.as_slice()).cloned();
        stats.unwrap_or_default().facts()
    }

    /// Adds the counts of another.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        for (key, stats) in other.stats {
            let full = self.stats.len() >= MOST_STATS;
            match self.stats.get_mut(&key) {
                Some(known) => known.merge(stats),
                None if full => {}
                None => {
                    self.stats.insert(key, stats);
                }
            }
        }
        for (key, place) in other.places {
            let count = other.counts.get(place).copied().unwrap_or_default();
            let row = key.first().map_or(0, |words| words.0 as usize);
            let known = self.places.get(&key).copied();
            let place = known.or_else(|| self.begin(key));
            match place.and_then(|place| self.counts.get_mut(place)) {
                Some(known) => known.add(count),
                None => self.others.entry(row).or_default().add(count),
            }
        }
        for (row, count) in other.others {
            self.others.entry(row).or_default().add(count);
        }
        self
    }

    /// The groups of each of so many rows with the words of their keys, the greatest weight first.
    pub(crate) fn by_row(&self, rows: usize) -> Vec<Vec<(&[Words], Count)>> {
        let mut by_row = vec![Vec::new(); rows];
        for (key, &place) in &self.places {
            if let Some((first, words)) = key.split_first()
                && let Some(&count) = self.counts.get(place)
                && let Some(groups) = by_row.get_mut(first.0 as usize)
            {
                groups.push((words, count));
            }
        }
        for groups in &mut by_row {
            groups.sort_by(|a, b| b.1.weight.cmp(&a.1.weight).then_with(|| a.0.cmp(b.0)));
        }
        by_row
    }

    /// The samples of a row in groups beyond the bound.
    pub(crate) fn others(&self, row: usize) -> Count {
        self.others.get(&row).copied().unwrap_or_default()
    }
}
