//! Counting samples by groups, in bounded memory.

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::groups::kept::{Bounded, ChosenGroups, Grouping};
use crate::groups::near::RecentGroups;
use crate::groups::stats::{ValueRange, ValueStats};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::KeyWords;

/// Samples of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Samples.
    pub samples: u64,
    /// Sum of their periods, by which perf weighs them.
    pub weight: u64,
}

/// Groups of samples. One a thread, merged at the end.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Maximum number of groups.
    most: usize,
    /// For each group, its place among the counts.
    places: HashMap<Box<[KeyWords]>, usize>,
    counts: Vec<SampleCount>,
    near: RecentGroups,
    /// Numbers of each group, where they are requested.
    stats: HashMap<Box<[KeyWords]>, ValueStats>,
    /// Samples of groups that are not kept, by table.
    others: HashMap<usize, OtherSamples>,
    /// Whether there were more groups than there may be.
    overflow: bool,
    /// Statistics of all numbers.
    pub(crate) range: ValueRange,
    /// The key of the sample at hand, its buffer used again: the row, then the words of each key.
    key: Vec<KeyWords>,
    /// The table of the sample at hand, if its group is not kept.
    unkept: Option<usize>,
}

/// The words of a group's keys, and its samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedGroup<'g> {
    pub(crate) words: &'g [KeyWords],
    pub(crate) count: SampleCount,
}

/// Samples of groups that are not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherSamples {
    pub(crate) count: SampleCount,
    pub(crate) stats: ValueStats,
}

impl SampleCount {
    /// Adds another.
    pub(crate) const fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.weight = self.weight.saturating_add(other.weight);
    }
}

impl Bounded for Groups {
    fn is_overflown(&self) -> bool {
        self.overflow
    }
}

impl Groups {
    /// At most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            places: HashMap::default(),
            counts: Vec::new(),
            near: RecentGroups::default(),
            stats: HashMap::default(),
            others: HashMap::default(),
            overflow: false,
            range: ValueRange::default(),
            key: Vec::new(),
            unkept: None,
        }
    }

    /// Counts a sample: in its group, or if that is not kept, among the others of its table.
    #[inline]
    pub(crate) fn add(
        &mut self,
        grouping: &Grouping<'_>,
        kept: Option<&ChosenGroups>,
        resolver: &mut Resolver<'_>,
        hit: Hit<'_>,
        dictionary: &Dictionary,
    ) {
        let count = SampleCount {
            samples: 1,
            weight: resolver.session().weight(hit.target, hit.sample),
        };
        let keeps = kept.is_none_or(|kept| kept.has(grouping, &mut self.key, resolver, hit));
        let table = match keeps {
            true => grouping.put(&mut self.key, resolver, hit, dictionary),
            false => grouping.table(hit.target),
        };
        let Some(table) = table else {
            return;
        };
        let place = match keeps.then(|| self.near.find(&self.key)) {
            Some(None) => self.find(),
            Some(place) => place,
            None => None,
        };
        match place.and_then(|place| self.counts.get_mut(place)) {
            Some(known) => {
                known.add(count);
                self.unkept = None;
            }
            None => {
                self.others.entry(table).or_default().count.add(count);
                self.unkept = Some(table);
            }
        }
    }

    /// Notes that a table has groups, without counting them.
    pub(crate) fn note_table(&mut self, table: usize) {
        self.others.entry(table).or_default();
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
    fn begin(&mut self, key: Box<[KeyWords]>) -> Option<usize> {
        let place = self.counts.len();
        if place >= self.most {
            self.overflow = true;
            return None;
        }
        self.places.insert(key, place);
        self.counts.push(SampleCount::default());
        Some(place)
    }

    /// Adds a value of the sample that was counted last.
    pub(crate) fn add_value(&mut self, value: &Value) {
        self.range.add(value);
        if let Some(table) = self.unkept {
            self.others.entry(table).or_default().stats.add(value);
            return;
        }
        match self.stats.get_mut(&*self.key) {
            Some(stats) => stats.add(value),
            None => {
                let mut stats = ValueStats::default();
                stats.add(value);
                self.stats.insert(self.key.as_slice().into(), stats);
            }
        }
    }

    /// The numbers of a group.
    pub(crate) fn stats(&self, row: usize, words: &[KeyWords]) -> ValueStats {
        let key: Vec<KeyWords> = std::iter::once(KeyWords::new(row as u64, 0))
            .chain(words.iter().copied())
            .collect();
        self.stats.get(key.as_slice()).cloned().unwrap_or_default()
    }

    /// Adds the counts of another.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.overflow |= other.overflow;
        self.range.merge(other.range);
        for (key, stats) in other.stats {
            let full = self.stats.len() >= self.most;
            match self.stats.get_mut(&key) {
                Some(known) => known.merge(stats),
                // There are more groups than there may be, too.
                None if full => {}
                None => {
                    self.stats.insert(key, stats);
                }
            }
        }
        for (key, place) in other.places {
            let count = other.counts.get(place).copied().unwrap_or_default();
            let known = self.places.get(&key).copied();
            let table = key.first().map_or(0, |row| row.kind as usize);
            let place = known.or_else(|| self.begin(key));
            match place.and_then(|place| self.counts.get_mut(place)) {
                Some(known) => known.add(count),
                // The table has groups, whichever of them found room.
                None => self.others.entry(table).or_default().count.add(count),
            }
        }
        for (table, others) in other.others {
            let known = self.others.entry(table).or_default();
            known.count.add(others.count);
            known.stats.merge(others.stats);
        }
        self
    }

    /// The groups of a table with the words of their keys.
    pub(crate) fn of_table(&self, table: usize) -> Vec<CountedGroup<'_>> {
        let groups = self.places.iter().filter_map(|(key, &place)| {
            let (first, words) = key.split_first()?;
            let is_of = first.kind as usize == table;
            let count = *self.counts.get(place)?;
            is_of.then_some(CountedGroup { words, count })
        });
        groups.collect()
    }

    /// Of so many tables, which have groups.
    pub(crate) fn tables(&self, tables: usize) -> Vec<bool> {
        let mut has = vec![false; tables];
        let rows = self.places.keys().filter_map(|key| key.first());
        for table in rows
            .map(|row| row.kind as usize)
            .chain(self.others.keys().copied())
        {
            if let Some(has) = has.get_mut(table) {
                *has = true;
            }
        }
        has
    }

    /// The samples of a table in groups that are not kept, if there are any.
    pub(crate) fn others(&self, table: usize) -> Option<&OtherSamples> {
        self.others.get(&table)
    }
}
