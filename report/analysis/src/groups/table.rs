//! Counting samples by groups, in bounded memory.

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_trace::events::site_samples::SiteSamples;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::groups::counted_groups::{Bounded, ChosenGroups, Grouping};
use crate::groups::recent_groups::RecentGroups;
use crate::groups::stats::{ValueRange, ValueStats};
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{KeyWords, argument_value};

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
    /// The keys of the samples at hand, the buffer used again: of each the row, then the words of each key.
    keys: Vec<KeyWords>,
}

/// How samples are counted by groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupWalk<'a> {
    pub(crate) grouping: &'a Grouping<'a>,
    /// The groups that are kept; `None` for all.
    pub(crate) kept: Option<&'a ChosenGroups>,
    pub(crate) dictionary: &'a Dictionary,
    /// Where each event has the argument that is summed up, if one is.
    pub(crate) summed: Option<&'a [Option<usize>]>,
}

/// The group of a sample: its table, and its key, unless it is not kept.
#[derive(Clone, Copy)]
struct GroupOfSample<'k> {
    table: usize,
    key: Option<&'k [KeyWords]>,
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
            keys: Vec::new(),
        }
    }

    /// Counts samples: each in its group, or if that is not kept, among the others of its table.
    pub(crate) fn add(
        &mut self,
        walk: GroupWalk<'_>,
        resolver: &mut Resolver<'_>,
        samples: SiteSamples<'_>,
    ) {
        let grouping = walk.grouping;
        let Some(table) = grouping.table(samples.target) else {
            return;
        };
        let mut keys = std::mem::take(&mut self.keys);
        match walk.kept {
            None => {
                grouping.put_all(&mut keys, resolver, samples, walk.dictionary);
                for (at, key) in keys.chunks_exact(grouping.words()).enumerate() {
                    let key = Some(key);
                    self.add_one(walk, resolver, samples, at, GroupOfSample { table, key });
                }
            }
            Some(kept) => {
                for (at, sample) in samples.samples().enumerate() {
                    let hit = Hit {
                        target: samples.target,
                        sample: &sample,
                    };
                    let keeps = kept.has(grouping, &mut keys, resolver, hit);
                    if keeps {
                        grouping.put(&mut keys, resolver, hit, walk.dictionary);
                    }
                    let key = keeps.then_some(&*keys);
                    self.add_one(walk, resolver, samples, at, GroupOfSample { table, key });
                }
            }
        }
        self.keys = keys;
    }

    /// Counts the sample at a place in its group, with the number that is summed up.
    #[inline]
    fn add_one(
        &mut self,
        walk: GroupWalk<'_>,
        resolver: &mut Resolver<'_>,
        samples: SiteSamples<'_>,
        at: usize,
        group: GroupOfSample<'_>,
    ) {
        let count = SampleCount {
            samples: 1,
            weight: samples.weight(at),
        };
        let group = self.count(group, count);
        if let Some(places) = walk.summed {
            let sample = samples.sample(at);
            let value = argument_value(places, resolver, samples.target, &sample);
            value
                .into_iter()
                .for_each(|value| self.add_value(group, value));
        }
    }

    /// Counts a sample. Returns its group, without the key if it is not kept.
    #[inline]
    fn count<'k>(&mut self, group: GroupOfSample<'k>, count: SampleCount) -> GroupOfSample<'k> {
        let GroupOfSample { table, key } = group;
        let place = key.and_then(|key| self.near.find(key).or_else(|| self.find(key)));
        match place.and_then(|place| self.counts.get_mut(place)) {
            Some(known) => {
                known.add(count);
                group
            }
            None => {
                self.others.entry(table).or_default().count.add(count);
                GroupOfSample { table, key: None }
            }
        }
    }

    /// Notes that a table has groups, without counting them.
    pub(crate) fn note_table(&mut self, table: usize) {
        self.others.entry(table).or_default();
    }

    /// The place of a group; `None` if it is one too many.
    fn find(&mut self, key: &[KeyWords]) -> Option<usize> {
        let place = match self.places.get(key) {
            Some(&place) => place,
            None => self.begin(key.into())?,
        };
        self.near.note(key, place);
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

    /// Adds a value of a sample of a group.
    fn add_value(&mut self, group: GroupOfSample<'_>, value: &Value) {
        self.range.add(value);
        let Some(key) = group.key else {
            self.others.entry(group.table).or_default().stats.add(value);
            return;
        };
        match self.stats.get_mut(key) {
            Some(stats) => stats.add(value),
            None => {
                let mut stats = ValueStats::default();
                stats.add(value);
                self.stats.insert(key.into(), stats);
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
